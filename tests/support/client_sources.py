"""Operations of the pinned official clients, read from their source without importing it.

A request builder states method, path, query and API version; a method of an operations class sends it and checks the status.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rehearsal.azure.client_operations import operation_key

PACKAGES = (
    "compute",
    "network",
    "storage",
    "keyvault",
    "privatedns",
    "dnsresolver",
    "imagebuilder",
    "msi.v2024_11_30",
    "authorization.v2022_04_01",
    "resource.resources",
)
_TOP = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)
_METHOD = re.compile(r"^    def (\w+)", re.MULTILINE)
_ACCEPTED = re.compile(r"status_code not in (\[[\d, ]+\])")
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VERSION = re.compile(r"20\d\d-\d\d-\d\d(-preview)?")


@dataclass(frozen=True)
class SourceOperation:
    """One method of an official client: package, group and method as a caller writes them, and the request that it sends.

    parameters are the arguments in the path by the path's own names; statuses are those that it accepts; polled is true for a `begin_`
    method.
    """

    package: str
    group: str
    name: str
    method: str
    path: str
    version: str
    query: tuple[str, ...]
    parameters: Mapping[str, str]
    statuses: tuple[int, ...]
    polled: bool

    @property
    def key(self) -> str:
        return operation_key(self.method, self.path)


@dataclass(frozen=True)
class _Built:
    method: str
    path: str
    version: str
    query: tuple[str, ...]
    parameters: Mapping[str, str]


def source_operations() -> Iterator[SourceOperation]:
    """Yield every operation of the pinned clients whose path is fixed."""
    for package in PACKAGES:
        spec = find_spec(f"azure.mgmt.{package}")
        assert spec is not None
        assert spec.origin is not None
        for path in sorted((Path(spec.origin).parent / "operations").glob("_*.py")):
            yield from _operations(package, path.read_text(encoding="utf-8"))


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each definition: parsing these alone is ten times as fast as parsing modules of 100,000 lines."""
    found = list(pattern.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)][: len(found)]
    return ((one[1], text[one.start() : end]) for one, end in zip(found, ends, strict=True))


def _operations(package: str, text: str) -> Iterator[SourceOperation]:
    builders: dict[str, str] = {}
    for name, part in _parts(_TOP, text):
        if name.startswith("build_"):
            builders[name] = part
        elif name.endswith("Operations"):
            group = _SNAKE.sub("_", name.removesuffix("Operations").replace("VMs", "Vms")).lower()
            for method, body in _parts(_METHOD, part):
                accepted, sent = _ACCEPTED.search(body), re.search(r"\b(build_\w+)\(", body)
                if accepted is None or sent is None:
                    continue
                built = _built(builders[sent[1]])
                if built is None:
                    continue
                polled = method.endswith("_initial")
                shown = f"begin{method.removesuffix('_initial')}" if polled else method
                statuses = tuple(ast.literal_eval(accepted[1]))
                yield SourceOperation(
                    package, group, shown, built.method, built.path, built.version, built.query, built.parameters, statuses, polled
                )


def _built(source: str) -> _Built | None:
    """Return the request of a builder; None without a fixed path below a subscription or a scope."""
    nodes = list(ast.walk(ast.parse(source)))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    path = next((text for text in texts if text.startswith("/")), "")
    if not path.startswith(("/subscriptions/", "/{scope}/providers/")):
        return None
    (method,) = (
        keyword.value.value
        for node in nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "method" and isinstance(keyword.value, ast.Constant)
    )
    query = sorted(
        node.slice.value
        for node in nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "_params"
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and node.slice.value != "api-version"
    )
    version = next((text for text in texts if _VERSION.fullmatch(text)), "")
    parameters = {
        str(key.value): value.args[0].value
        for node in nodes
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call) and isinstance(value.args[0], ast.Constant)
    }
    return _Built(str(method), path, version, tuple(query), parameters)
