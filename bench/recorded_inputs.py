"""Recorded inputs as SDK arguments: texts that were outputs of other resources become those outputs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi import _types

from rehearsal.program.graph import Resource, Secret, reveal


@dataclass
class CreatedResources:
    """Resources that a program has created so far, by recorded URN, and outputs derived from them."""

    resources: dict[str, pulumi.Resource] = field(default_factory=dict)
    derived: dict[tuple[tuple[str, ...], str], pulumi.Output[str]] = field(default_factory=dict)

    def output(self, urn: str, attribute: str) -> Any:
        """Return a resource's output, by the provider's name of it."""
        resource = self.resources[urn]
        return getattr(resource, _types.resource_pulumi_to_py_names(type(resource)).get(attribute, attribute))

    def carrying(self, sources: tuple[str, ...], text: str) -> pulumi.Output[str]:
        """Return a text that depends on resources without being their output."""
        if (sources, text) not in self.derived:
            ids = [self.output(urn, "id") for urn in sources]
            self.derived[sources, text] = pulumi.Output.all(*ids).apply(lambda _: text)
        return self.derived[sources, text]


Deferred = Callable[[CreatedResources], Any]
"""A value that is known once its source resources are created."""


@dataclass(frozen=True)
class Argument:
    """One argument of an SDK's class; with later, its value contains Deferred values at any depth."""

    name: str
    value: Any
    later: bool

    @classmethod
    def of(cls, name: str, value: Any) -> Argument:
        return cls(name, value, any(callable(leaf) for leaf in _leaves(value)))


def plain(name: str, value: Any) -> Argument:
    """Return an argument as a value; secrets stay secret."""
    return Argument.of(name, _replaced(value, {}, set()))


def wired(name: str, value: Any, sources: list[Resource]) -> Argument:
    """Return an argument in which each text that was an output of a source is that output again.

    Sources without such a text, because a text was composed of them (a kubeconfig), are carried by the first text.
    """
    known = {text: (source.urn, attribute) for source in sources for text, attribute in _texts(source)}
    used: set[str] = set()
    replaced = _replaced(value, known, used)
    rest = tuple(source.urn for source in sources if source.urn not in used)
    return Argument.of(name, _carried(replaced, rest) if rest else replaced)


def keyword_arguments(arguments: tuple[Argument, ...], made: CreatedResources) -> dict[str, Any]:
    """Return keyword arguments for the SDK."""
    return {argument.name: _filled(argument.value, made) if argument.later else argument.value for argument in arguments}


def _texts(source: Resource) -> Iterator[tuple[str, str | None]]:
    """Yield texts among a resource's outputs, with the SDK's attribute if there is one; the most direct one last, so that it wins."""
    yield from ((text, None) for text in _leaves(reveal(source.outputs)) if isinstance(text, str))
    yield from ((reveal(value), key) for key, value in source.outputs.items() if isinstance(reveal(value), str))
    if source.id:
        yield source.id, "id"


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case Mapping():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case _:
            yield value


def _replaced(value: Any, known: Mapping[str, tuple[str, str | None]], used: set[str]) -> Any:
    match value:
        case Mapping():
            return {key: _replaced(item, known, used) for key, item in value.items()}
        case list():
            return [_replaced(item, known, used) for item in value]
        case Secret() | str() if reveal(value) in known:
            urn, attribute = known[reveal(value)]
            used.add(urn)
            found = _output(urn, attribute, reveal(value))
            return (lambda made: pulumi.Output.secret(found(made))) if isinstance(value, Secret) else found
        case Secret():
            return _secret(reveal(value))
        case _:
            return value


def _output(urn: str, attribute: str | None, text: str) -> Deferred:
    if attribute is None:
        return lambda made: made.carrying((urn,), text)
    return lambda made: made.output(urn, attribute)


def _secret(value: Any) -> Deferred:
    return lambda _made: pulumi.Output.secret(value)


def _carried(value: Any, sources: tuple[str, ...]) -> Any:
    """Return the value with its first text depending on the sources."""
    match value:
        case Mapping():
            first = next(iter(value))
            return {**value, first: _carried(value[first], sources)}
        case list():
            return [_carried(value[0], sources), *value[1:]]
        case str():
            return lambda made: made.carrying(sources, value)
        case _:
            # It is already an output: a secret composed of secrets, or one of several outputs.
            return lambda made: pulumi.Output.all(value(made), made.carrying(sources, "")).apply(lambda both: both[0])


def _filled(value: Any, made: CreatedResources) -> Any:
    if callable(value):
        return value(made)
    if isinstance(value, dict):
        return {key: _filled(item, made) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, made) for item in value]
    return value
