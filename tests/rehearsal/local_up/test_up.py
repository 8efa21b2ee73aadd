"""An update makes the embedded Azure what the region file says, and no more than that."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from embedded_regions import CPU, GPU, delete_by_hand, found_changes, named, planned, pool, scale_set, standing, updated
from pinned_graph import pinned

from components.api_servers import PAUSE_BETWEEN_BATCHES
from gpufleet.up_output import held_lines, outcome_lines
from rehearsal.azure.arm_id import parse
from rehearsal.azure.compute.instances import addresses_of, state_of
from rehearsal.azure.compute.rolling_upgrades import start_upgrade
from rehearsal.azure.compute.scale_set_rules import span_seconds
from rehearsal.azure.persistence import dump
from rehearsal.azure.resource import Request
from rehearsal.local_up.deleted_vaults import ReservedVaultNameError, reserved_names
from rehearsal.local_up.etcd_lines import etcd_lines
from rehearsal.local_up.timeline import timeline_of
from rehearsal.local_up.up import purge_only, tear_down
from rehearsal.local_up.update_state import Approvals
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.run import run_program
from stacks.program import make

PRINCIPAL = re.compile(r'"principalId": "[0-9a-f-]+"')
"""The principal of an identity, which differs from cloud to cloud."""
OTHER_PIN = {"cpu": "cpu@2026.10.0"}


def test_a_second_up_changes_nothing() -> None:
    cloud = standing()
    before = {key: (one.version, one.changed) for key, one in cloud.resources.items()}
    outcome = updated(planned(), cloud)
    assert outcome.complete
    assert found_changes(outcome) == []
    assert {key: (one.version, one.changed) for key, one in cloud.resources.items()} == before


def test_every_machine_has_its_addresses_after_the_first_up() -> None:
    cloud, plan = standing(), planned()
    for of_pool in plan.clusters[0].pools:
        for one in of_pool.scale_sets:
            found = scale_set(cloud, one.name)
            taken = [address for _, _, _, address in addresses_of(found)]
            assert len(set(taken)) == one.capacity * of_pool.addresses_per_machine


def test_another_image_pin_updates_the_model_and_touches_no_machine() -> None:
    cloud = standing()
    before = {key: (one.model, one.os_disk, one.host) for key, one in state_of(scale_set(cloud, "dev-cpu-000")).instances.items()}
    outcome = updated(planned(pool(CPU, image=OTHER_PIN["cpu"])), cloud)
    (change,) = found_changes(outcome)
    assert change.item.record.name == "dev-dev-pool-cpu-000"
    assert "virtualMachineProfile.storageProfile.imageReference.id" in change.values
    assert (change.outdated_count, change.machine_counts) == (10, (10, 10))
    after = state_of(scale_set(cloud, "dev-cpu-000"))
    assert {key: (one.model, one.os_disk, one.host) for key, one in after.instances.items()} == before
    assert after.model not in {one.model for one in after.instances.values()}
    assert timeline_of(outcome).outdated_count == 10


def test_more_nodes_grow_one_set_and_nothing_else() -> None:
    outcome = updated(planned(pool(CPU, nodes=28)), standing())
    (change,) = found_changes(outcome)
    assert (change.item.record.name, change.machine_counts, list(change.values)) == ("dev-dev-pool-cpu-000", (10, 28), ["sku.capacity"])
    assert timeline_of(outcome).running == timeline_of(outcome).machines == 32


def test_a_new_pin_while_two_machines_are_deleted_ends_at_the_plans_capacity() -> None:
    cloud = standing()
    gone = delete_by_hand(cloud, "dev-cpu-000", 2)
    assert len(state_of(scale_set(cloud, "dev-cpu-000")).living()) == 8
    outcome = updated(planned(pool(CPU, image=OTHER_PIN["cpu"])), cloud)
    assert outcome.complete
    machines = state_of(scale_set(cloud, "dev-cpu-000")).living()
    assert len(machines) == 10
    assert not {str(one.id) for one in machines} & set(gone)
    (change,) = found_changes(outcome)
    assert (change.machine_counts, change.item.outdated_count) == ((8, 10), 8)


def test_machines_deleted_by_hand_come_back_without_any_other_change() -> None:
    cloud = standing()
    delete_by_hand(cloud, "dev-gpu-000", 1)
    outcome = updated(planned(), cloud)
    assert named(outcome) == {"dev-dev-pool-gpu-000": "~"}
    assert len(state_of(scale_set(cloud, "dev-gpu-000")).living()) == 2


def test_what_the_program_no_longer_declares_goes_after_what_uses_it() -> None:
    cloud = standing()
    balanced = updated(planned(pool(CPU, load_balanced=True)), cloud)
    assert named(balanced)["dev-dev-ingress-lb"] == "+"
    outcome = updated(planned(), cloud)
    assert outcome.complete
    assert {name: sign for name, sign in named(outcome).items() if sign == "-"} == {
        "dev-dev-ingress-lb": "-",
        "dev-dev-network-subnets-ingress": "-",
    }
    assert not [key for key in cloud.resources if "ingress" in key]


def test_a_changed_etcd_image_reaches_no_running_member() -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["control_plane"]["etcd"]["image"] = "etcd@2026.10.0"

    cloud = standing()
    outcome = updated(planned(change), cloud)
    assert found_changes(outcome) == []
    nothing, line = outcome_lines(outcome, 1.0, None, everything=False)
    assert nothing == (
        "dev: nothing to change: 245 resources and 14 machines are as planned, except 3 etcd machines, which keep older values (1.0 s)"
    )
    assert line == (
        "cluster dev: 3 etcd machines (dev-etcd-0, dev-etcd-1, dev-etcd-2) keep image etcd@2026.11.0 (declared: etcd@2026.10.0); an update "
        "never changes an etcd machine: recreate one machine after the other, and then replace its member with playbooks/etcd-replace.yml, "
        "see docs/runbooks/etcd-member-lost.md"
    )
    (machine,) = (one for one in cloud.resources.values() if one.id.name == "dev-etcd-1" and one.id.type.endswith("/virtualMachines"))
    cloud.handle(Request("DELETE", machine.id, principal="an operator"))
    cloud.advance(cloud.now + 3_600.0)
    (line,) = etcd_lines(updated(planned(change), cloud))
    assert line.startswith("cluster dev: 2 etcd machines (dev-etcd-0, dev-etcd-2) keep image etcd@2026.11.0 (declared: etcd@2026.10.0); ")


def test_changed_boot_files_and_a_changed_key_are_reported_for_etcd_machines() -> None:
    assert etcd_lines(updated(planned(), standing())) == []
    plan = planned()
    cluster = replace(plan.clusters[0], etcd=replace(plan.clusters[0].etcd, quota_bytes=4 << 30))
    access = plan.spec.access.model_copy(update={"ssh_public_key": plan.spec.access.ssh_public_key.replace("fleet-operators", "other")})
    changed = replace(plan, spec=plan.spec.model_copy(update={"access": access}), clusters=(cluster,))
    (line,) = etcd_lines(updated(changed, standing()))
    key = "SSH key fleet-operators (declared: other)"
    assert line.startswith(
        "cluster dev: 3 etcd machines (dev-etcd-0, dev-etcd-1, dev-etcd-2) keep older boot files (/etc/systemd/system/etcd.service) "
        f"and {key}; 3 etcd machines (dev-events-0, dev-events-1, dev-events-2) keep {key}; an update never changes an etcd machine: "
    )


def test_an_update_waits_for_the_rolling_upgrade_of_the_api_servers() -> None:
    cloud, plan = standing(), planned(lambda cluster: cluster["control_plane"]["api_servers"].update(image="api-server@2026.10.0"))
    started = cloud.now
    outcome = updated(plan, cloud)
    servers = scale_set(cloud, plan.clusters[0].api_servers.name)
    assert outcome.complete
    assert {one.os_disk for one in state_of(servers).instances.values()} == {2}
    assert cloud.now - started > span_seconds(PAUSE_BETWEEN_BATCHES, "pause")
    assert not [line for line in outcome_lines(outcome, 1.0, None, everything=False) if "rolling upgrade" in line or "out of date" in line]
    (again,) = outcome_lines(updated(plan, cloud), 1.0, None, everything=False)
    assert again == "dev: nothing to change: 245 resources and 14 machines are as planned (1.0 s)"


def test_api_servers_in_a_rolling_upgrade_are_in_progress_and_not_out_of_date() -> None:
    cloud, plan = standing(), planned()
    servers = scale_set(cloud, plan.clusters[0].api_servers.name)
    numbers = tuple(state_of(servers).instances)
    start_upgrade(cloud, servers, "osRollingUpgrade", numbers)
    cloud.step(cloud.now)
    (line,) = outcome_lines(updated(plan, cloud), 1.0, None, everything=False)
    assert "14 machines are as planned; 2 of them are in a rolling upgrade in progress (Azure upgrades them in batches" in line


def test_a_higher_generation_replaces_the_authorities_and_reissues_what_hangs_on_them() -> None:
    outcome = updated(planned(lambda cluster: cluster.update(ca_generation=2)), standing())
    signs = named(outcome)
    assert {name for name, sign in signs.items() if sign == "+-"} == {
        f"dev-dev-pki-{name}" for name in ("cluster-ca", "etcd-ca", "events-ca", "front-proxy-ca")
    }
    assert sum(change.item.record.type.endswith(":Certificate") for change in found_changes(outcome)) == 15


def test_keys_and_certificates_stay_from_one_up_to_the_next() -> None:
    cloud = standing()
    stored_by_urn = {record["urn"]: record["kept"] for record in dump(cloud)["services"]["stacks"]["dev"]["records"]}
    updated(planned(pool(CPU, nodes=11)), cloud)
    assert {record["urn"]: record["kept"] for record in dump(cloud)["services"]["stacks"]["dev"]["records"]} == stored_by_urn


def test_destroy_takes_everything_and_the_next_up_is_refused_until_the_vaults_are_purged() -> None:
    cloud, plan = standing(), planned()
    outcome = tear_down(plan, cloud, Approvals(frozenset({"all"})), lambda *_: None)
    assert outcome.complete
    assert outcome.after == {}
    assert {one.id.type for one in cloud.resources.values()} == {"Microsoft.KeyVault/locations/deletedVaults"}
    before = cloud.now
    with pytest.raises(ReservedVaultNameError) as caught:
        updated(plan, cloud)
    assert {one.name for one in caught.value.held} == {vault.name for vault in plan.clusters[0].vaults}
    assert all(one.purgeable for one in caught.value.held)
    assert cloud.now == before
    assert len(cloud.resources) == 3
    assert purge_only(plan, cloud, Approvals()).purged == 3
    assert reserved_names(plan, cloud) == []
    assert updated(plan, cloud).complete


def test_a_purge_alone_touches_nothing_that_stands() -> None:
    cloud, plan = standing(), planned()
    cloud.handle(Request("DELETE", parse(plan.clusters[0].vault("node").id), principal="an operator"))
    cloud.advance(cloud.now + 600.0)
    before = set(cloud.resources)
    outcome = purge_only(plan, cloud, Approvals())
    assert (outcome.purged, outcome.complete) == (1, True)
    assert before - set(cloud.resources) == {key for key in before if "deletedvaults" in key}
    assert updated(plan, cloud).complete


def test_a_vault_that_may_not_be_purged_is_told_apart() -> None:
    cloud, plan = standing(), planned()
    for one in cloud.resources.values():
        if one.id.type == "Microsoft.KeyVault/vaults":
            one.properties["enablePurgeProtection"] = True
    tear_down(plan, cloud, Approvals(frozenset({"all"})), lambda *_: None)
    held = reserved_names(plan, cloud)
    assert [one.purgeable for one in held] == [False] * 3
    result = held_lines(held, "dev", Path("kept"))
    assert len(result) == 1
    assert result[0].endswith("this region cannot purge them: wait until then, or use another --state")


@pytest.mark.parametrize("stack", ["dev-base", "dev"])
def test_an_up_registers_what_a_cloud_that_accepts_everything_sees(stack: str) -> None:
    plan = planned()
    backend = AcceptingCloud(tenant=plan.spec.access.tenant)
    base = run_program(lambda: make(plan, "dev-base"), "gpufleet", "dev-base", backend=backend)
    outcome = updated(plan, standing())
    graphs = dict(zip(("dev-base", "dev"), outcome.graphs, strict=True))
    if stack == "dev-base":
        expected = base
    else:
        outputs = {"dev-base": base.stack_outputs}
        expected = run_program(lambda: make(plan, "dev"), "gpufleet", "dev", backend=backend, stack_outputs=outputs)
    assert {item.urn for item in graphs[stack]} == {item.urn for item in expected}
    assert PRINCIPAL.sub("", pinned(graphs[stack])) == PRINCIPAL.sub("", pinned(expected))


def test_no_gpu_pool_means_no_machines_of_it() -> None:
    cloud = standing()
    allowed = Approvals(frozenset({"dev-gpu-000"}), machines=2)
    outcome = updated(planned(lambda cluster: cluster["pools"].pop(GPU)), cloud, allowed)
    assert outcome.complete
    assert "dev-dev-pool-gpu-000" in {name for name, sign in named(outcome).items() if sign == "-"}
    assert not [key for key in cloud.resources if "dev-gpu-000" in key]
