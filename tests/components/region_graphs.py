"""Resource graphs that several tests share: a region's base stack, and the foundation of its clusters."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pulumi
import pulumi_azure_native as azure

from components.aliases import drop_version_aliases
from components.base import RegionBase, RegionBaseArgs
from components.base_outputs import BaseOutputs
from components.identity import Identity, IdentityArgs
from components.network import Network, NetworkArgs
from components.pki import Pki, PkiArgs
from components.plan.model import ClusterPlan, RegionPlan
from components.vault_secrets import VaultSecrets, VaultSecretsArgs
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph, Resource, reveal
from rehearsal.program.run import run_program
from stacks.load import load_plan

PROJECT = "gpufleet"
REGIONS = ("dev", "southcentralus")


@cache
def planned(region: str) -> RegionPlan:
    """Plan of a shipped region."""
    return load_plan(region)


@cache
def base_graph(region: str) -> Graph:
    """A region's base stack."""
    plan = planned(region)

    def program() -> None:
        drop_version_aliases()
        for name, value in RegionBase("base", RegionBaseArgs(plan)).exports.items():
            pulumi.export(name, value)

    return run_program(program, PROJECT, plan.base_stack, backend=AcceptingCloud())


@cache
def ground_graph(region: str) -> Graph:
    """Return the foundation of the clusters of a shipped region."""
    return lay_ground(planned(region), base_graph(region))


def lay_ground(plan: RegionPlan, base_stack: Graph) -> Graph:
    """Networks, identities, certificates and written secrets of a region's clusters, on its rehearsed base stack.

    The exports are, by cluster, its kubeconfig, authority's certificate, and secrets by "vault role/name".
    """

    def program() -> None:
        drop_version_aliases()
        base = BaseOutputs.from_stack(pulumi.StackReference(f"organization/{PROJECT}/{plan.base_stack}"))
        in_base = azure.Provider("in-base", subscription_id=plan.spec.subscription)
        for cluster in plan.clusters:
            _lay(plan, cluster, base, in_base)

    outputs = {plan.base_stack: base_stack.stack_outputs}
    return run_program(program, PROJECT, plan.stack, backend=AcceptingCloud(), stack_outputs=outputs)


def _lay(region: RegionPlan, cluster: ClusterPlan, base: BaseOutputs, in_base: azure.Provider) -> None:
    name, group = cluster.name, cluster.resource_group
    opts = pulumi.ResourceOptions(provider=azure.Provider(name, subscription_id=cluster.subscription))
    Network(f"{name}-network", NetworkArgs(cluster, region, group, base, in_base), opts)
    pki = Pki(f"{name}-pki", PkiArgs(cluster), opts)
    secrets = VaultSecrets(f"{name}-secrets", VaultSecretsArgs(cluster, pki.secrets, base, in_base), opts)
    Identity(f"{name}-identity", IdentityArgs(cluster, region, group, base, in_base, secrets.bootstrap_token_id), opts)
    values = {"/".join(key): value for key, value in pki.secrets.items()}
    pulumi.export(name, {"kubeconfig": pki.admin_kubeconfig, "ca": pki.ca_certificate, "secrets": values})


def azure_ids(graph: Graph) -> list[str]:
    """Ids of all Azure resources of a graph, sorted; one made twice is there twice."""
    return sorted(str(resource.id) for resource in graph if resource.type.startswith("azure-native:"))


def by_id(graph: Graph) -> Mapping[str, Resource]:
    """Azure resources by id."""
    return {str(resource.id): resource for resource in graph if resource.type.startswith("azure-native:")}


def bodies(resources: Iterable[Resource]) -> list[Mapping[str, Any]]:
    """Inputs of resources, secrets shown."""
    return [reveal(resource.inputs) for resource in resources]
