"""The image builder runs templates as on Azure: it writes gallery versions, fails with their refusals, and can be cancelled."""

from __future__ import annotations

import pytest
from image_bodies import HOUR, IMAGE, TEMPLATE, at_version, calls_with_image, template, version
from plain_calls import GROUP, LOCATION, Calls

from rehearsal.azure.images import is_replicated
from rehearsal.azure.images.image_versions import version_numbers


@pytest.fixture
def calls() -> Calls:
    return calls_with_image()


def test_a_run_writes_the_next_version_and_ends_when_it_is_replicated(calls: Calls) -> None:
    calls.put(f"{IMAGE}/versions/1.2.3", version(LOCATION))
    calls.put(TEMPLATE, template(versioning={"scheme": "Latest", "major": 1}, replicationRegions=[LOCATION, "southcentralus"]))
    answer = calls.call("POST", TEMPLATE, None, "run")
    assert answer.status == 202
    running = calls.get(TEMPLATE)["properties"]["lastRunStatus"]
    assert (running["runState"], running["runSubState"]) == ("Running", "Building")
    assert calls.refusal("POST", TEMPLATE, None, "run").code == "Conflict"
    assert calls.refusal("DELETE", TEMPLATE).code == "Conflict"
    calls.settled(answer)
    assert is_replicated(calls.cloud, at_version("1.2.4"), "southcentralus")
    assert calls.get(TEMPLATE)["properties"]["lastRunStatus"]["runState"] == "Succeeded"
    assert calls.get(f"{TEMPLATE}/runOutputs/out")["properties"]["artifactId"] == at_version("1.2.4")
    calls.post(TEMPLATE, "run")
    assert calls.exists(f"{IMAGE}/versions/1.2.5")


def test_a_run_without_a_scheme_numbers_its_version_by_the_date(calls: Calls) -> None:
    calls.put(TEMPLATE, template())
    calls.post(TEMPLATE, "run")
    (made,) = calls.cloud.list(f"{GROUP}/providers/{IMAGE}", "Microsoft.Compute/galleries/images/versions")
    assert version_numbers(made.id.name)[:2] == (0, 26001)


def test_a_run_that_the_gallery_refuses_fails_and_says_why(calls: Calls) -> None:
    calls.put(TEMPLATE, template(replicationRegions=["southcentralus"]))
    answer = calls.call("POST", TEMPLATE, None, "run")
    calls.cloud.run_until_idle()
    assert answer.operation is not None
    assert answer.operation.error is not None
    assert "must contain the location" in answer.operation.error["message"]
    assert calls.get(TEMPLATE)["properties"]["lastRunStatus"]["runState"] == "Failed"


def test_a_cancelled_run_writes_nothing(calls: Calls) -> None:
    calls.put(TEMPLATE, template())
    assert calls.refusal("POST", TEMPLATE, None, "cancel").status == 400
    calls.call("POST", TEMPLATE, None, "run")
    calls.post(TEMPLATE, "cancel")
    calls.cloud.advance(calls.cloud.now + 48 * HOUR)
    assert calls.get(TEMPLATE)["properties"]["lastRunStatus"]["runState"] == "Canceled"
    assert not list(calls.cloud.list(f"{GROUP}/providers/{IMAGE}", "Microsoft.Compute/galleries/images/versions"))


def test_a_build_that_takes_longer_than_it_may_fails_at_that_time(calls: Calls) -> None:
    body = template()
    body["properties"]["buildTimeoutInMinutes"] = 6
    calls.put(TEMPLATE, body)
    began = calls.cloud.now
    calls.call("POST", TEMPLATE, None, "run")
    calls.cloud.run_until_idle()
    assert calls.cloud.now == began + 360
    assert "buildTimeoutInMinutes" in calls.get(TEMPLATE)["properties"]["lastRunStatus"]["message"]


def test_a_template_takes_new_outputs_and_no_new_source(calls: Calls) -> None:
    calls.put(TEMPLATE, template())
    changed = template()
    changed["properties"]["source"] = {**changed["properties"]["source"], "sku": "2404"}
    refused = calls.refusal("PUT", TEMPLATE, changed)
    assert refused.code == "Conflict"
    assert "source" in refused.message
    calls.put(TEMPLATE, template(excludeFromLatest=True))


def test_a_template_writes_to_galleries_only(calls: Calls) -> None:
    body = template()
    body["properties"]["distribute"] = [{"type": "VHD", "runOutputName": "out"}]
    assert "SharedImage" in calls.refusal("PUT", TEMPLATE, body).message


def test_run_outputs_come_of_runs_alone(calls: Calls) -> None:
    calls.put(TEMPLATE, template())
    calls.post(TEMPLATE, "run")
    assert calls.refusal("PUT", f"{TEMPLATE}/runOutputs/mine", {}).status == 405
    assert calls.refusal("DELETE", f"{TEMPLATE}/runOutputs/out").status == 405
    calls.delete(TEMPLATE)
    assert not calls.exists(f"{TEMPLATE}/runOutputs/out")


def test_a_saved_replication_and_a_saved_run_go_on_as_they_would_have(calls: Calls) -> None:
    calls.put(TEMPLATE, template(replicationRegions=[LOCATION, "southcentralus"]))
    calls.call("POST", TEMPLATE, None, "run")
    calls.call("PUT", f"{IMAGE}/versions/1.0.0", version(LOCATION, "southcentralus"))
    calls.cloud.advance(calls.cloud.now + 600)
    again = calls.rebuilt()
    for one in (calls, again):
        one.cloud.run_until_idle()
    assert again.get(f"{IMAGE}/versions/1.0.0") == calls.get(f"{IMAGE}/versions/1.0.0")
    assert again.get(TEMPLATE) == calls.get(TEMPLATE)
    assert again.get(TEMPLATE)["properties"]["lastRunStatus"]["runState"] == "Succeeded"
