"""Repair of the state that a killed command left: locks and operations under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rehearsal.pulumi_cli.state_repair import (
    PendingOperation,
    lock_files,
    pending_operations,
    pending_text,
    restore_backup,
    with_created_resources,
)

PROVIDER = "urn:pulumi:dev::gpufleet::pulumi:providers:azure-native::dev-azure"
SET = "urn:pulumi:dev::gpufleet::azure-native:compute:VirtualMachineScaleSet::cpu"


def state(*operations: dict[str, Any]) -> dict[str, Any]:
    provider = {"urn": PROVIDER, "type": "pulumi:providers:azure-native", "inputs": {"subscriptionId": "s"}}
    return {"resources": [provider], "pending_operations": list(operations)}


def operation(kind: str, urn: str, type_: str, **more: object) -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": urn, "type": type_, "provider": f"{PROVIDER}::some-id", **more}}


def test_a_creation_in_azure_is_asked_after_by_the_id_that_it_leads_to() -> None:
    inputs = {"resourceGroupName": "g", "vmScaleSetName": "dev-cpu-000"}
    found = pending_operations(state(operation("creating", SET, "azure-native:compute:VirtualMachineScaleSet", inputs=inputs)))
    assert found == [
        PendingOperation(
            SET, "creating", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/dev-cpu-000"
        )
    ]
    assert pending_text("dev", found) == (
        "dev: 1 operation was under way when the last command died: VirtualMachineScaleSet cpu (creating); "
        "reading their results from Azure and the clusters"
    )


def test_a_creation_in_a_cluster_is_asked_after_by_namespace_and_name() -> None:
    urn = "urn:pulumi:dev::gpufleet::kubernetes:core/v1:ConfigMap::map"
    (found,) = pending_operations(
        state(
            operation("creating", urn, "kubernetes:core/v1:ConfigMap", inputs={"metadata": {"namespace": "kube-system", "name": "coredns"}})
        )
    )
    assert found.id == "kube-system/coredns"


def test_an_update_is_known_by_the_id_that_it_has() -> None:
    (found,) = pending_operations(state(operation("updating", SET, "azure-native:compute:VirtualMachineScaleSet", id="/subscriptions/s/x")))
    assert found.id == "/subscriptions/s/x"


def test_a_creation_whose_id_nobody_can_tell_has_none() -> None:
    found = pending_operations(
        state(
            operation("creating", SET, "azure-native:compute:VirtualMachineScaleSet", inputs={}),
            operation(
                "creating", "urn:pulumi:dev::gpufleet::pulumi-python:dynamic/pki:Certificate::c", "pulumi-python:dynamic/pki:Certificate"
            ),
        )
    )
    assert [one.id for one in found] == ["", ""]


def test_what_was_being_created_is_taken_over_for_a_refresh_to_find_or_drop() -> None:
    inputs = {"resourceGroupName": "g", "vmScaleSetName": "dev-cpu-000"}
    left = state(
        operation("creating", SET, "azure-native:compute:VirtualMachineScaleSet", inputs=inputs),
        operation(
            "creating", "urn:pulumi:dev::gpufleet::pulumi-python:dynamic/pki:Certificate::c", "pulumi-python:dynamic/pki:Certificate"
        ),
        operation("deleting", PROVIDER, "pulumi:providers:azure-native", id="some-id"),
    )
    taken = with_created_resources(left, pending_operations(left))
    assert taken["pending_operations"] == []
    assert [resource["urn"] for resource in taken["resources"]] == [PROVIDER, SET]
    assert taken["resources"][1]["id"].endswith("/virtualMachineScaleSets/dev-cpu-000")
    assert taken["resources"][1]["outputs"] == inputs


def test_only_a_stacks_own_locks_are_its_own(tmp_path: Path) -> None:
    for stack in ("dev", "dev-base"):
        folder = tmp_path / ".pulumi" / "locks" / "organization" / "gpufleet" / stack
        folder.mkdir(parents=True)
        (folder / "a.json").write_text("{}")
    assert [path.parent.name for path in lock_files(tmp_path, "gpufleet", "dev")] == ["dev"]
    assert lock_files(tmp_path, "gpufleet", "southcentralus") == []


def test_a_checkpoint_that_was_cut_off_gives_way_to_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi" / "stacks" / "gpufleet"
    folder.mkdir(parents=True)
    path = folder / "dev.json"
    path.write_text('{"version": 3, "checkpoint": {"stack"')
    assert not restore_backup(tmp_path, "gpufleet", "dev"), "there is none before"
    (folder / "dev.json.bak").write_text('{"version": 3}')
    assert restore_backup(tmp_path, "gpufleet", "dev")
    assert path.read_text() == '{"version": 3}'
    assert not restore_backup(tmp_path, "gpufleet", "dev"), "a whole one stays"
    assert not restore_backup(tmp_path, "gpufleet", "dev-base"), "a stack without any needs none"
