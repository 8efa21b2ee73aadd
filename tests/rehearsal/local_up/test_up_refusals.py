"""An update that would do what nobody has allowed says so, and what it was read from stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from embedded_regions import CPU, GPU, delete_by_hand, named, planned, pool, scale_set, standing, updated

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import save
from rehearsal.azure.region_cloud import OtherRegionError, open_region_cloud
from rehearsal.azure.resource import Request
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import Scenario
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.local_up.up import tear_down
from rehearsal.local_up.update_state import Approvals, UnknownProtectedNameError, UpdateRefusedError
from stacks.load import load_plan


def refusal(cloud: Cloud, plan: object, allowed: Approvals | None = None) -> str:
    with pytest.raises(UpdateRefusedError) as caught:
        updated(plan, cloud, allowed)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_smaller_number_is_refused_with_the_machines_that_would_go() -> None:
    assert refusal(standing(), planned(pool(CPU, nodes=7))) == (
        "scale set dev-cpu-000: has 10 machines, but capacity 7 is wanted, which would delete 3 machines that were not drained; drain and "
        'delete them by instance first (docs/everyday-commands.md, "Remove machines from a pool"), or restore the number in the region file'
    )


def test_no_approval_lets_a_number_fall() -> None:
    assert "would delete 3 machines" in refusal(standing(), planned(pool(CPU, nodes=7)), Approvals(frozenset({"all"}), machines=3))


def all_smaller(cluster: dict[str, Any]) -> None:
    pool(CPU, nodes=7)(cluster)
    pool(GPU, nodes=1, largest_gang=1)(cluster)
    cluster["control_plane"]["api_servers"]["count"] = 1


def test_each_scale_set_that_would_shrink_has_a_line_of_its_own() -> None:
    lines = refusal(standing(), planned(all_smaller)).splitlines()
    assert [line.partition(", but")[0] for line in sorted(lines)] == [
        "scale set dev-api: has 2 machines",
        "scale set dev-cpu-000: has 10 machines",
        "scale set dev-gpu-000: has 2 machines",
    ]


def test_a_number_between_the_machines_left_and_the_old_one_is_reached_from_below() -> None:
    cloud = standing()
    delete_by_hand(cloud, "dev-cpu-000", 3)
    assert updated(planned(pool(CPU, nodes=8)), cloud).complete
    assert len(state_of(scale_set(cloud, "dev-cpu-000")).living()) == 8


def test_a_number_below_the_machines_left_is_refused_although_some_were_deleted() -> None:
    cloud = standing()
    delete_by_hand(cloud, "dev-cpu-000", 3)
    assert "has 7 machines, but capacity 6 is wanted, which would delete 1 machine that was not drained" in refusal(
        cloud, planned(pool(CPU, nodes=6))
    )


def test_machines_that_are_still_being_deleted_are_waited_for() -> None:
    cloud = standing()
    found = scale_set(cloud, "dev-cpu-000")
    cloud.handle(Request("POST", parse(found.id.text), "delete", body={"instanceIds": ["0", "1", "2"]}, principal="an operator"))
    message = refusal(cloud, planned(pool(CPU, nodes=8)))
    assert message.startswith("scale set dev-cpu-000: Azure is still deleting 3 of its 10 machines")


def test_machines_that_cannot_be_read_are_not_taken_for_none() -> None:
    cloud = standing()
    cloud.admission_checks.append(Unreadable(503))
    message = refusal(cloud, planned(pool(CPU, nodes=11)))
    assert message == (
        "scale set dev-cpu-000: its live machines could not be read, so that capacity 11 could delete some: Azure answered 503 "
        "ServiceUnavailable: no instance can be read; run the command again when Azure answers"
    )


def test_a_reading_that_azure_delays_is_repeated_in_azures_time() -> None:
    cloud = standing()
    cloud.admission_checks.append(Unreadable(429, times=2))
    assert updated(planned(pool(CPU, nodes=11)), cloud).complete
    assert len(state_of(scale_set(cloud, "dev-cpu-000")).living()) == 11


class Unreadable:
    """An Azure that refuses to list instances: the first `times` requests, or all of them."""

    def __init__(self, status: int, times: int | None = None) -> None:
        self.status, self.left = status, times

    def admit(self, _cloud: Cloud, request: Request, kind: ResourceType) -> dict[str, str]:
        if kind.type == INSTANCE and request.action == "list" and self.left != 0:
            self.left = None if self.left is None else self.left - 1
            raise AzureError(self.status, "ServiceUnavailable", "no instance can be read", headers={"Retry-After": "30"})
        return {}


def test_machines_that_were_taken_out_by_instance_let_the_number_fall() -> None:
    cloud = standing()
    delete_by_hand(cloud, "dev-cpu-000", 3)
    remaining = {key for key, one in state_of(scale_set(cloud, "dev-cpu-000")).instances.items() if not one.going}
    assert updated(planned(pool(CPU, nodes=7)), cloud).complete
    assert set(state_of(scale_set(cloud, "dev-cpu-000")).instances) == remaining


def test_a_dropped_pool_is_refused_by_name_with_its_machines() -> None:
    message = refusal(standing(), planned(lambda cluster: cluster["pools"].pop(GPU)))
    assert message == (
        "VirtualMachineScaleSet dev-gpu-000, with 2 machines: protected, and no longer declared, so that it would be deleted; put it back "
        "into the region file, or see to what it serves and allow it: --unprotect dev-gpu-000"
    )


def test_allowing_a_dropped_pool_still_asks_for_its_machines() -> None:
    message = refusal(standing(), planned(lambda cluster: cluster["pools"].pop(GPU)), Approvals(frozenset({"dev-gpu-000"})))
    assert message.startswith("2 machines would be lost (2 of dev-gpu-000)")


def test_an_emptied_pool_goes_once_it_is_allowed_by_name() -> None:
    cloud = standing()
    delete_by_hand(cloud, "dev-gpu-000", 2)
    outcome = updated(planned(lambda cluster: cluster["pools"].pop(GPU)), cloud, Approvals(frozenset({"dev-gpu-000"})))
    assert outcome.complete
    assert named(outcome)["dev-dev-pool-gpu-000"] == "-"


def test_what_azure_fixes_at_creation_is_no_reason_to_delete_machines() -> None:
    message = refusal(standing(), planned(pool(CPU, capacity="spot")))
    assert message.startswith(
        "VirtualMachineScaleSet dev-cpu-000, with 10 machines: protected, and would be deleted and created again, because Changing "
        "property 'priority' is not allowed"
    )
    assert message.endswith("revert the change, or see to what it serves and allow it: --unprotect dev-cpu-000")


def test_a_set_that_may_be_made_anew_is_made_anew() -> None:
    cloud = standing()
    before = set(state_of(scale_set(cloud, "dev-cpu-000")).born)
    outcome = updated(planned(pool(CPU, capacity="spot")), cloud, Approvals(frozenset({"dev-cpu-000"}), machines=10))
    assert outcome.complete
    assert named(outcome)["dev-dev-pool-cpu-000"] == "+-"
    assert state_of(scale_set(cloud, "dev-cpu-000")).born != before
    assert scale_set(cloud, "dev-cpu-000").properties["virtualMachineProfile"]["priority"] == "Spot"


def test_a_team_that_is_dropped_keeps_its_namespace() -> None:
    message = refusal(standing(), planned(lambda cluster: cluster["tenancy"]["teams"][0].update(name="research")))
    assert message.startswith("Namespace dev-dev-objects-Namespace/platform: protected, and no longer declared")


def test_a_name_that_nothing_protected_has_is_refused_with_the_nearest() -> None:
    cloud = standing()
    before = (cloud.now, set(cloud.resources))
    allowed = Approvals(frozenset({"dev-gpu-00", "dev-cpu-000"}))
    with pytest.raises(UnknownProtectedNameError, match=r"^no protected resource is called dev-gpu-00; did you mean dev-gpu-000 or "):
        tear_down(planned(), cloud, allowed, lambda *_: None)
    with pytest.raises(UnknownProtectedNameError, match=r"^no protected resource is called dev-gpu-00; did you mean dev-gpu-000 or "):
        updated(planned(), cloud, allowed)
    assert (cloud.now, set(cloud.resources)) == before


def test_a_directory_of_another_region_is_refused(tmp_path: Path) -> None:
    with StateDirectory(tmp_path) as directory:
        save(directory, standing())
        with pytest.raises(OtherRegionError, match=f"^{tmp_path} contains the region dev, not southcentralus; give another --state$"):
            open_region_cloud(directory, load_plan("southcentralus"), Scenario())


def test_a_directory_of_which_another_region_was_destroyed_may_be_taken(tmp_path: Path) -> None:
    cloud = standing()
    tear_down(planned(), cloud, Approvals(frozenset({"all"})), lambda *_: None)
    with StateDirectory(tmp_path) as directory:
        save(directory, cloud)
        assert open_region_cloud(directory, load_plan("swedencentral"), Scenario()).now > cloud.now


def test_destroy_names_everything_that_is_protected_and_deletes_nothing() -> None:
    cloud = standing()
    before = set(cloud.resources)
    with pytest.raises(UpdateRefusedError) as caught:
        tear_down(planned(), cloud, Approvals(), lambda *_: None)
    assert {one.word for one in caught.value.guarded} == {
        "BlobContainer",
        "Namespace",
        "StorageAccount",
        "Vault",
        "VirtualMachine",
        "VirtualMachineScaleSet",
    }
    *named, last = str(caught.value).splitlines()
    assert named[:3] == [
        "  VirtualMachineScaleSet dev-cpu-000, 10 machines",
        "  VirtualMachineScaleSet dev-gpu-000, 2 machines",
        "  BlobContainer dev",
    ]
    assert len(named) == 14
    assert last.startswith("these 14 resources, with ")
    assert last.endswith("--unprotect NAME for each, or --unprotect all for all 14")
    assert set(cloud.resources) == before
