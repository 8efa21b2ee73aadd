"""Version aliases are removed; aliases for renames remain."""

import pulumi
import pytest
from pulumi_azure_native import network
from pulumi_kubernetes.rbac.v1 import ClusterRole

from components.aliases import drop_version_aliases
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.run import run_program

BACKEND = AcceptingCloud(subscription="11111111-1111-1111-1111-111111111111")
RENAMED = pulumi.Alias(name="old")


def aliases_sent(resource: str, *, dropped: bool, own: list[pulumi.Input[pulumi.Alias | str]]) -> list[object]:
    """Return the aliases of a resource after all transformations."""
    seen: list[object] = []

    def look(args: pulumi.ResourceTransformationArgs) -> None:
        seen.extend(args.opts.aliases or [])

    def program() -> None:
        if dropped:
            drop_version_aliases()
        pulumi.runtime.register_stack_transformation(look)
        opts = pulumi.ResourceOptions(aliases=own)
        if resource == "azure":
            network.NatGateway("nat", resource_group_name="rg", nat_gateway_name="nat", opts=opts)
        else:
            ClusterRole("role", metadata={"name": "role"}, opts=opts)

    run_program(program, "gpufleet", "dev", backend=BACKEND)
    return seen


@pytest.mark.parametrize("resource", ["azure", "kubernetes"])
def test_version_aliases_are_dropped_and_those_of_a_rename_kept(resource: str) -> None:
    own: list[pulumi.Input[pulumi.Alias | str]] = [RENAMED, "urn:pulumi:dev::gpufleet::azure-native:network:NatGateway::older"]
    assert aliases_sent(resource, dropped=True, own=own) == own
    assert len(aliases_sent(resource, dropped=False, own=own)) > len(own)
