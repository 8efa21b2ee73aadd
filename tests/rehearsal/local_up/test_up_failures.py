"""When Azure refuses or fails, all other resources are created, the user reads one paragraph per error, and a second `up` resumes."""

from __future__ import annotations

import pytest
from embedded_regions import planned, scale_set, updated

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.region_cloud import PAUSE_SECONDS, new_region_cloud
from rehearsal.azure.scenario import AllocationFailure, Outage, Scenario, Throttling, begin_scenario
from rehearsal.azure.scenario_files import in_region, load_scenario
from rehearsal.local_up.failure_text import paragraphs
from rehearsal.local_up.timeline import timeline_of
from rehearsal.local_up.up import UpOutcome


def first(scenario: Scenario) -> UpOutcome:
    return updated(planned(), new_region_cloud(planned(), scenario))


def second(cloud: Cloud) -> UpOutcome:
    cloud.advance(cloud.now + PAUSE_SECONDS)
    begin_scenario(cloud, in_region(Scenario(), planned()))
    return updated(planned(), cloud)


def assert_whole(outcome: UpOutcome) -> None:
    assert outcome.complete
    assert (timeline_of(outcome).running, timeline_of(outcome).machines) == (14, 14)


def test_quota_one_machine_short_is_one_paragraph_and_the_next_up_goes_on() -> None:
    outcome = first(load_scenario("quota-one-short"))
    messages = paragraphs(outcome)
    assert len(messages) == 2
    assert messages[0] == (
        "244 resources exist, among them 12 of 14 machines; 2 of 3 scale sets are complete; 1 failed. Existing resources remain."
    )
    assert messages[1].startswith(
        "QuotaExceeded: VirtualMachineScaleSet dev-dev-pool-gpu-000: Operation could not be completed as it results in"
    )
    assert messages[1].endswith(
        "Azure grants too few vCPUs: request the limit above (Azure portal, Quotas), or lower nodes in the region file."
    )
    assert_whole(second(outcome.cloud))


def test_machines_without_hardware_are_one_paragraph_and_the_next_up_asks_for_them_alone() -> None:
    outcome = first(Scenario(seed=5, allocation_failures=(AllocationFailure(rate=0.3),)))
    assert not outcome.complete
    messages = paragraphs(outcome)
    assert sum("AllocationFailed" in paragraph for paragraph in messages) == 1
    assert "Missing: pool dev/cpu lacks 3 of 10 machines of Standard_D2ads_v6 in zone 1. 79 resources depend on them." in "\n".join(
        messages
    )
    assert "run gpufleet up again later, which requests only the missing machines" in "\n".join(messages)
    there = {key for key, one in state_of(scale_set(outcome.cloud, "dev-cpu-000")).instances.items() if one.state == "Succeeded"}
    after = second(outcome.cloud)
    assert_whole(after)
    assert there <= set(state_of(scale_set(after.cloud, "dev-cpu-000")).instances)


def test_what_waits_for_a_failure_is_not_tried_and_the_rest_is() -> None:
    outcome = first(Scenario(seed=1, allocation_failures=(AllocationFailure(rate=1.0, vm_size="Standard_D2ads_v6"),)))
    update = outcome.updates[1]
    members = {f"dev-dev-{ring}-{member}" for ring in ("etcd", "events") for member in range(3)}
    assert {urn.rpartition(":")[2] for urn in update.failures} == members | {"dev-dev-pool-cpu-000"}
    assert all(cause in update.failures for cause in update.skipped.values())
    assert {urn.rpartition("::")[2] for urn in update.skipped} >= {"dev-dev-api-ready", "dev-dev-objects-Namespace/platform"}
    assert len(state_of(scale_set(outcome.cloud, "dev-gpu-000")).living()) == 2
    assert_whole(second(outcome.cloud))


def test_calls_that_azure_puts_off_are_told_in_one_paragraph_and_made_again() -> None:
    outcome = first(Scenario(seed=1, throttling=Throttling(compute=0.005)))
    assert_whole(outcome)
    (messages,) = paragraphs(outcome)
    assert messages.startswith(
        "Azure delayed 1 call (TooManyRequests): each was retried after the time that Azure requested, at most 3 times."
    )


def test_throttling_that_lasts_is_one_paragraph_and_the_next_up_goes_on() -> None:
    outcome = first(Scenario(seed=1, throttling=Throttling(network=0.02)))
    messages = [paragraph for paragraph in paragraphs(outcome) if paragraph.startswith("TooManyRequests")]
    assert len(messages) == 1
    assert "The request was throttled: more than 20 writes and deletes in 5 minutes" in messages[0]
    assert messages[0].endswith("run gpufleet up again after the time in the message, with a lower --parallel if it happens again.")
    assert_whole(second(outcome.cloud))


def test_an_outage_that_lasts_leaves_the_clusters_for_the_next_up() -> None:
    outcome = first(Scenario(outages=(Outage(services=("Microsoft.KeyVault",)),)))
    assert outcome.unread
    assert "The clusters were skipped, because stack dev-base is not complete." in paragraphs(outcome)
    assert_whole(second(outcome.cloud))


def test_nothing_is_deleted_while_something_fails() -> None:
    whole = first(Scenario(seed=1)).cloud
    begin_scenario(whole, in_region(Scenario(allocation_failures=(AllocationFailure(rate=1.0),)), planned()))
    other = planned(lambda cluster: (cluster["pools"][0].update(load_balanced=True), cluster["pools"][1].update(nodes=3)))
    begun = updated(other, whole)
    assert not begun.complete
    begin_scenario(whole, in_region(Scenario(allocation_failures=(AllocationFailure(rate=1.0),)), planned()))
    back = updated(planned(lambda cluster: cluster["pools"][1].update(nodes=4)), whole)
    assert back.left > 0
    assert f"{back.left:,} resources that are no longer declared remain until an update succeeds." in paragraphs(back)


@pytest.mark.parametrize("name", ["calm", "throttled"])
def test_a_shipped_scenario_lets_dev_come_up(name: str) -> None:
    assert_whole(first(load_scenario(name)))
