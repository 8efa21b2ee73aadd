import pulumi
import pulumi_azure_native as azure
import pytest
from region_graphs import PROJECT, planned

from components.base_outputs import BaseOutputs, vault_key
from components.vault_secrets import VaultSecrets, VaultSecretsArgs
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph, reveal
from rehearsal.program.run import ProgramError, run_program

PLAN = planned("dev")
CLUSTER = PLAN.clusters[0]
WANTED = {(vault.role, secret): f"value of {vault.role} {secret}" for vault in CLUSTER.vaults for secret in vault.secrets}


def written(values: dict[tuple[str, str], str], retained: set[str]) -> Graph:
    """Write values into the vaults of dev; types that a delete leaves where they are go into retained."""

    def note(args: pulumi.ResourceTransformationArgs) -> None:
        if args.opts.retain_on_delete:
            retained.add(args.type_)

    def program() -> None:
        pulumi.runtime.register_stack_transformation(note)
        provider = azure.Provider("base", subscription_id=PLAN.spec.subscription)
        ids = {vault_key(CLUSTER.name, vault.role): vault.id for vault in CLUSTER.vaults}
        base = BaseOutputs(PLAN.base_resource_group, "", "", PLAN.hub.private_zone, {}, ids, "")
        secrets = {key: pulumi.Output.from_input(value) for key, value in values.items()}
        VaultSecrets("secrets", VaultSecretsArgs(CLUSTER, secrets, base, provider))

    return run_program(program, PROJECT, PLAN.stack, backend=AcceptingCloud())


def test_each_value_goes_into_its_own_vault_and_is_hidden_even_if_it_came_plain() -> None:
    retained: set[str] = set()
    graph = written(WANTED, retained)
    roles = {vault.name: vault.role for vault in CLUSTER.vaults}
    made = graph.of_type("azure-native:keyvault:Secret")
    values = {(roles[item.inputs["vaultName"]], item.inputs["secretName"]): reveal(item.inputs["properties"])["value"] for item in made}
    assert values == WANTED
    assert not any(value in graph.to_json() for value in WANTED.values())
    # A delete would go to the vault itself, which lets nobody in.
    assert retained == {"azure-native:keyvault:Secret"}


def test_a_secret_without_a_value_stops_the_program() -> None:
    values = {key: value for key, value in WANTED.items() if key != ("node", "bootstrap-token")}
    with pytest.raises(ProgramError, match="bootstrap-token"):
        written(values, set())
