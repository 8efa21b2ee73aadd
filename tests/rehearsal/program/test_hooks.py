"""Hooks of a program run before an update, with what Pulumi's engine gives them, and their errors fail it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import pulumi
import pytest
from pulumi_azure_native import resources
from typing_extensions import override

from rehearsal.program.dispatch import LiveBackend
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.registration import PriorResource, Registration, RegistrationResponse, RegistrationResult
from rehearsal.program.run import ProgramError, run_program

PRIOR = PriorResource("/groups/rg", {"location": "swedencentral", "tags": {"count": 3}}, {"name": "rg"})


class Updating(LiveBackend):
    """A backend in which every group exists, and an update waits for its hooks."""

    def __init__(self) -> None:
        self.reasons: dict[str, str | None] = {}

    @override
    def declare(self, registration: Registration, /) -> RegistrationResult:
        return RegistrationResult.SUCCESS

    @override
    def put(self, registration: Registration, dynamic: DynamicProviders, /) -> Future[RegistrationResponse]:
        future: Future[RegistrationResponse] = Future()
        assert registration.before_update is not None

        def ended(done: asyncio.Future[str | None]) -> None:
            self.reasons[registration.name] = done.result()
            future.set_result(RegistrationResponse("/groups/rg", {}))

        asyncio.ensure_future(registration.before_update(PRIOR)).add_done_callback(ended)
        return future

    @override
    def invoke(self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        raise AssertionError(token)

    @override
    def advance(self) -> bool:
        return False


def reasons(*hooks: Callable[[pulumi.ResourceHookArgs], Any], options: pulumi.ResourceHookOptions | None = None) -> str | None:
    """Return the reason of the failed hook of a group, whose hooks are registered by number."""
    backend = Updating()

    def program() -> None:
        named: list[Any] = [pulumi.ResourceHook(f"hook {number}", hook, options) for number, hook in enumerate(hooks)]
        binding = pulumi.ResourceHookBinding(before_update=named)
        tags = {"count": "2", "key": pulumi.Output.secret("x")}
        resources.ResourceGroup("rg", location="swedencentral", tags=tags, opts=pulumi.ResourceOptions(hooks=binding))

    run_program(program, "gpufleet", "dev", backend=backend)
    return backend.reasons["rg"]


def test_a_hook_is_given_the_resource_before_and_after() -> None:
    given: list[pulumi.ResourceHookArgs] = []
    assert reasons(given.append) is None
    (args,) = given
    assert (args.id, args.name, args.type) == ("/groups/rg", "rg", "azure-native:resources:ResourceGroup")
    assert args.urn == "urn:pulumi:dev::gpufleet::azure-native:resources:ResourceGroup::rg"
    assert args.new_inputs is not None
    assert args.new_inputs["location"] == "swedencentral"
    assert isinstance(args.new_inputs["tags"], pulumi.Output), "it contains a secret"
    assert (args.old_inputs, args.old_outputs) == (PRIOR.inputs, PRIOR.outputs)
    assert args.new_outputs is None


def test_the_first_failure_ends_the_hooks_and_is_their_reason() -> None:
    async def failing(_args: pulumi.ResourceHookArgs) -> None:
        raise ValueError("not allowed")

    later: list[pulumi.ResourceHookArgs] = []
    assert reasons(lambda _: None, failing, later.append) == "not allowed"
    assert later == []


def test_a_hook_whose_errors_are_ignored_fails_nothing() -> None:
    def failing(_args: pulumi.ResourceHookArgs) -> None:
        raise ValueError("not allowed")

    later: list[pulumi.ResourceHookArgs] = []
    assert reasons(failing, later.append, options=pulumi.ResourceHookOptions(ignore_errors=True)) is None
    assert len(later) == 1


def test_hooks_that_a_rehearsal_does_not_run_are_refused() -> None:
    def program() -> None:
        binding = pulumi.ResourceHookBinding(before_delete=[pulumi.ResourceHook("last", lambda _: None)])
        resources.ResourceGroup("rg", location="swedencentral", opts=pulumi.ResourceOptions(hooks=binding))

    with pytest.raises(ProgramError, match="'rg': has before_delete hooks, which a rehearsal does not run; use before_update"):
        run_program(program, "gpufleet", "dev", backend=Updating())


def test_two_hooks_of_one_name_are_refused() -> None:
    def program() -> None:
        for _ in range(2):
            pulumi.ResourceHook("same", lambda _: None)

    with pytest.raises(ProgramError, match="resource hook 'same': is already registered"):
        run_program(program, "gpufleet", "dev", backend=Updating())
