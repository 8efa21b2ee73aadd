"""The embedded Azure starts and continues at this machine's time, and only dates depend on it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from embedded_regions import first_state, found_changes, planned, standing, updated

from rehearsal.arm.served_azure import open_live_model
from rehearsal.azure.clock import REFERENCE_START
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.persistence import dump, save
from rehearsal.azure.region_cloud import PAUSE_SECONDS, new_region_cloud, open_region_cloud
from rehearsal.azure.scenario import HostFailures, Scenario, elapsed
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.local_up.deleted_vaults import reserved_names
from rehearsal.local_up.up import tear_down
from rehearsal.local_up.update_state import Approvals

DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
DAY = 86_400.0
MOST_SECONDS = 600.0
"""Seconds that a test may take."""


def stored(folder: Path, cloud: Cloud, *, earlier_version: bool = False) -> None:
    """Write a state; as the earlier version did, without the start, which was always REFERENCE_START."""
    document = dump(cloud)
    if earlier_version:
        assert document["events"].pop("start") == REFERENCE_START
    with StateDirectory(folder) as directory:
        directory.replace(document)


def reopened(folder: Path, now: float) -> Cloud:
    with StateDirectory(folder) as directory:
        return open_region_cloud(directory, planned(), Scenario(), now)


def planned_faults(cloud: Cloud) -> list[float]:
    """Return the times of the next draws of faults."""
    return [at for at, _, key, *_ in cloud.events.dump()["events"] if key == "happenings"]


def without_dates_and_keys(value: Any, start: float) -> Any:
    """Return plain JSON with moments relative to a start, and without certificates and keys, which are new for each run."""
    match value:
        case dict():
            return {name: "a secret" if name == "value" else without_dates_and_keys(one, start) for name, one in value.items()}
        case list():
            return [without_dates_and_keys(one, start) for one in value]
        case float() | int() if 1e9 < value < 4e9:
            return value - start
        case str():
            return DATE.sub("a date", value)
        case _:
            return value


def test_two_starts_give_models_that_differ_only_in_dates_and_keys() -> None:
    start = REFERENCE_START + 36_054_721
    outcome = updated(planned(), new_region_cloud(planned(), Scenario(seed=1), start))
    assert outcome.began == start
    one, other = json.loads(first_state()), json.loads(json.dumps(dump(outcome.cloud)))
    for part in ("resources", "operations", "events", "numbers"):
        assert without_dates_and_keys(one[part], REFERENCE_START) == without_dates_and_keys(other[part], start), part


def test_a_new_azure_starts_now() -> None:
    started = new_region_cloud(planned(), Scenario()).now
    assert 0 <= time.time() - started < MOST_SECONDS


def test_a_state_of_the_earlier_version_continues_now_and_the_time_away_is_nobodys_duration(tmp_path: Path) -> None:
    cloud = standing()
    identity = next(one.properties["vmId"] for one in cloud.resources.values() if "vmId" in one.properties)
    stored(tmp_path, cloud, earlier_version=True)
    now = REFERENCE_START + 330 * DAY
    later = reopened(tmp_path, now)
    assert later.now == now
    outcome = updated(planned(), later)
    assert (outcome.complete, found_changes(outcome), outcome.seconds) == (True, [], 0.0)
    assert identity in {one.properties.get("vmId") for one in later.resources.values()}
    save_and_open = tmp_path / "again"
    with StateDirectory(save_and_open) as directory:
        save(directory, later)
    assert reopened(save_and_open, now).events.start == REFERENCE_START
    destroyed = tear_down(planned(), reopened(save_and_open, now + DAY), Approvals(frozenset({"all"})), lambda *_: None)
    assert 0 < destroyed.seconds < 2 * 3_600


def test_a_state_that_is_ahead_of_this_machine_continues_an_hour_later(tmp_path: Path) -> None:
    cloud = standing()
    stored(tmp_path, cloud)
    assert reopened(tmp_path, cloud.now - DAY).now == cloud.now + PAUSE_SECONDS


def test_names_of_deleted_vaults_are_free_when_their_retention_has_passed_while_nobody_looked(tmp_path: Path) -> None:
    cloud = standing()
    tear_down(planned(), cloud, Approvals(frozenset({"all"})), lambda *_: None)
    stored(tmp_path, cloud, earlier_version=True)
    assert len(reserved_names(planned(), reopened(tmp_path, cloud.now + 6 * DAY))) == 3
    assert reserved_names(planned(), reopened(tmp_path, cloud.now + 8 * DAY)) == []


def test_a_scenario_pauses_while_no_program_uses_the_azure(tmp_path: Path) -> None:
    scenario = Scenario(host_failures=(HostFailures(per_instance_day=2.0),))
    with StateDirectory(tmp_path) as directory:
        cloud = open_region_cloud(directory, planned(), scenario, REFERENCE_START)
        assert updated(planned(), cloud).complete
        save(directory, cloud)
    (due,) = planned_faults(cloud)
    with open_live_model(planned(), tmp_path, None, 1.0, keep=True) as live:
        away = live.cloud.now - cloud.now
        assert live.cloud.now == pytest.approx(time.time(), abs=MOST_SECONDS)
        assert elapsed(live.cloud) == pytest.approx(elapsed(cloud))
        assert planned_faults(live.cloud) == [pytest.approx(due + away)]


def test_a_manual_clock_moves_by_hand_only(tmp_path: Path) -> None:
    cloud = standing()
    stored(tmp_path, cloud)
    with open_live_model(planned(), tmp_path, None, 0.0, keep=True) as live:
        assert live.clock.now() == live.cloud.now == cloud.now
