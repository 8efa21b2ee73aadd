"""A program runs to its end, or fails with one reason, and leaves nothing behind."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_azure_native as azure_native
import pytest
from programs import OTHER_SUBSCRIPTION, SUBSCRIPTION, Group, KeyPair, Ready, RecordingBackend
from pulumi_azure_native import managedidentity, resources

from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.dispatch import CreatedResource
from rehearsal.program.graph import Graph, Secret, reveal
from rehearsal.program.run import ProgramError, run_program

BACKEND = AcceptingCloud(subscription=SUBSCRIPTION)


def resource_group(name: str, opts: pulumi.ResourceOptions | None = None) -> resources.ResourceGroup:
    return resources.ResourceGroup(name, resource_group_name=name, location="swedencentral", opts=opts)


def register(make: Callable[..., pulumi.Resource], *args: str) -> None:
    """A program of one resource."""
    make(*args)


def failure_of(program: Callable[[], Any], backend: AcceptingCloud = BACKEND) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        run_program(program, "gpufleet", "dev", backend=backend)
    assert "\n" not in str(caught.value)
    return caught.value


def test_exports_come_back_with_their_secrets_kept() -> None:
    def program() -> None:
        pulumi.export("group", resource_group("rg").id)
        pulumi.export("token", pulumi.Output.secret("s3cret"))
        pulumi.export("plain", {"nested": [1, 2.5, True, pulumi.Output.secret("inner")]})

    graph = run_program(program, "gpufleet", "dev", backend=BACKEND)
    assert graph.stack_outputs == {
        "group": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg",
        "token": Secret("s3cret"),
        "plain": {"nested": [1, 2.5, True, Secret("inner")]},
    }
    assert "s3cret" not in graph.to_json()
    assert "s3cret" not in repr(graph)


def test_configuration_reaches_the_program_and_not_the_next_one() -> None:
    seen: list[str | None] = []

    def program() -> None:
        seen.append(pulumi.Config("gpufleet").get("region"))
        seen.append(f"{pulumi.get_project()}/{pulumi.get_stack()}")

    run_program(program, "gpufleet", "one", backend=BACKEND, config={"gpufleet:region": "swedencentral"})
    run_program(program, "gpufleet", "two", backend=BACKEND)
    assert seen == ["swedencentral", "gpufleet/one", None, "gpufleet/two"]


def test_two_runs_of_one_program_give_the_same_graph() -> None:
    def program() -> None:
        group = Group("group")
        for number in range(5):
            resource_group(f"rg-{number}", pulumi.ResourceOptions(parent=group))
        group.register_outputs({})

    first, second = (run_program(program, "gpufleet", "dev", backend=BACKEND) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert [resource.urn for resource in first] == [resource.urn for resource in second]


def test_a_stack_reference_reads_the_outputs_of_a_stack_rehearsed_before() -> None:
    def base() -> None:
        pulumi.export("vault", "kv-dev")
        pulumi.export("token", pulumi.Output.secret("s3cret"))

    def cluster() -> None:
        reference = pulumi.StackReference("organization/gpufleet/dev-base")
        pulumi.export("vault", reference.require_output("vault"))
        pulumi.export("token", reference.require_output("token"))
        pulumi.export("absent", reference.get_output("absent"))

    outputs = {"dev-base": run_program(base, "gpufleet", "dev-base", backend=BACKEND).stack_outputs}
    graph = run_program(cluster, "gpufleet", "dev", backend=BACKEND, stack_outputs=outputs)
    assert graph.stack_outputs == {"vault": "kv-dev", "token": Secret("s3cret")}
    assert [resource.type for resource in graph] == ["pulumi:pulumi:Stack", "pulumi:pulumi:StackReference"]


def test_a_reference_to_a_stack_not_rehearsed_says_which_are() -> None:
    def program() -> None:
        pulumi.export("vault", pulumi.StackReference("dev-base").require_output("vault"))

    assert "stack 'dev-base' has not been rehearsed (rehearsed: none)" in failure_of(program).reason


def test_a_dynamic_provider_makes_a_real_key_and_its_private_half_stays_secret() -> None:
    def program() -> None:
        pair = KeyPair("ca", "etcd-ca")
        pulumi.export("public", pair.public_key)
        pulumi.export("private", pair.private_key)

    graph = run_program(program, "gpufleet", "dev", backend=BACKEND)
    (pair,) = graph.of_type("pulumi-python:dynamic/pki:KeyPair")
    assert (pair.id, pair.inputs) == ("etcd-ca", {"commonName": "etcd-ca", "__provider": "programs.KeyPairs"})
    assert graph.stack_outputs["public"].startswith("-----BEGIN PUBLIC KEY-----")
    assert reveal(graph.stack_outputs["private"]).startswith("-----BEGIN PRIVATE KEY-----")
    assert isinstance(graph.stack_outputs["private"], Secret)
    assert isinstance(pair.outputs["private_key"], Secret)
    assert "PRIVATE KEY" not in graph.to_json()


def test_a_dynamic_provider_that_waits_for_the_cloud_is_answered_by_the_face() -> None:
    backend = RecordingBackend()
    graph = run_program(lambda: register(Ready, "api"), "gpufleet", "dev", backend=backend)
    assert [(request[0], request[2]) for request in backend.requests] == [
        ("pulumi-python:dynamic/control:Ready", {"endpoint": "https://10.0.0.1:6443"})
    ]
    assert graph.of_type("pulumi-python:dynamic/control:Ready")[0].id


def test_a_dynamic_provider_that_refuses_its_inputs_fails_the_run() -> None:
    assert failure_of(lambda: register(KeyPair, "ca", "")).reason == "pulumi-python:dynamic/pki:KeyPair 'ca': commonName: is empty"


def test_a_failing_program_raises_its_own_message() -> None:
    def program() -> None:
        resource_group("rg")
        raise ValueError("pool a100: 101 machines in one placement group")

    failed = failure_of(program)
    assert str(failed) == "stack dev: pool a100: 101 machines in one placement group"
    assert isinstance(failed.__cause__, ValueError)


def test_a_lookup_error_names_itself() -> None:
    empty: dict[str, str] = {}
    assert failure_of(lambda: empty["missing"]).reason == "KeyError: 'missing'"


def test_an_error_in_an_apply_fails_the_run() -> None:
    def program() -> None:
        resource_group("rg").id.apply(lambda _id: int("ten"))

    assert failure_of(program).reason == "invalid literal for int() with base 10: 'ten'"


def test_a_value_that_pulumi_cannot_send_is_reported_without_the_value() -> None:
    def program() -> None:
        pulumi.CustomResource("azure-native:network:Subnet", "web", {"properties": {"secret": "s3cret", "bad": {1, 2}}})

    reason = failure_of(program).reason
    assert "s3cret" not in reason
    assert "'web'" in reason
    assert reason.endswith("unexpected input of type set for bad in CustomResource")


def test_the_first_of_many_failures_is_the_one_reported(capfd: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        first = pulumi.CustomResource("unknown:module:First", "first")
        for number in range(20):
            resource_group(f"rg-{number}", pulumi.ResourceOptions(depends_on=[first]))
        pulumi.CustomResource("unknown:module:Second", "second", {"first": first.id})

    assert failure_of(program).reason.startswith("unknown:module:First 'first': unknown:module:First has no rule for its id")
    gc.collect()
    assert capfd.readouterr().err == ""


class BrokenBackend(AcceptingCloud):
    """Answers every create with the same refusal or result."""

    def __init__(self, answer: CreatedResource | Exception) -> None:
        super().__init__(subscription=SUBSCRIPTION)
        self._answer = answer

    def create(self, *_asked: Any) -> CreatedResource:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (RuntimeError("quota of 980 resource groups reached"), "quota of 980 resource groups reached"),
        (KeyError("metadata"), "KeyError: 'metadata'"),
        (CreatedResource("", {}), "was created without an id; a provider must return one"),
        (CreatedResource("/id", {"value": object()}), "a value of type object is not JSON-like; return JSON-like values"),
    ],
)
def test_a_face_that_fails_fails_the_run_with_the_resource_named(answer: CreatedResource | Exception, cause: str) -> None:
    reason = failure_of(lambda: register(resource_group, "rg"), BrokenBackend(answer)).reason
    assert reason == f"azure-native:resources:ResourceGroup 'rg': {cause}"


def test_a_function_the_face_cannot_answer_fails_the_run() -> None:
    def program() -> None:
        resources.get_resource_group(resource_group_name="rg")

    assert failure_of(program).reason.startswith("azure-native:resources:getResourceGroup needs a real cloud")


def test_a_function_is_answered_for_the_provider_it_is_called_with() -> None:
    def program() -> None:
        provider = azure_native.Provider("other", subscription_id=OTHER_SUBSCRIPTION)
        client = azure_native.authorization.get_client_config_output(opts=pulumi.InvokeOutputOptions(provider=provider))
        pulumi.export("subscription", client.subscription_id)

    assert run_program(program, "gpufleet", "dev", backend=BACKEND).stack_outputs == {"subscription": OTHER_SUBSCRIPTION}


def test_a_program_that_waits_for_a_value_nobody_produces_fails_instead_of_hanging() -> None:
    def program() -> None:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        managedidentity.UserAssignedIdentity("id", resource_group_name=never)
        resource_group("rg")

    assert failure_of(program).reason == (
        "waits for a value that nothing will ever produce; "
        "the last resource registered was urn:pulumi:dev::gpufleet::azure-native:resources:ResourceGroup::rg"
    )


def test_a_failed_run_leaves_the_next_one_clean() -> None:
    thresholds = gc.get_threshold()
    failure_of(lambda: register(pulumi.CustomResource, "unknown:module:Thing", "thing"))
    graph: Graph = run_program(lambda: register(resource_group, "rg"), "gpufleet", "dev", backend=BACKEND)
    assert [resource.type for resource in graph] == ["pulumi:pulumi:Stack", "azure-native:resources:ResourceGroup"]
    assert gc.get_threshold() == thresholds


def test_progress_counts_every_resource() -> None:
    counts: list[int] = []

    def program() -> None:
        for number in range(3):
            resource_group(f"rg-{number}")

    run_program(program, "gpufleet", "dev", backend=BACKEND, progress=counts.append)
    assert counts == [1, 2, 3, 4]
