"""Progress lines of a build: at each start and end, every half minute between, with an estimate of the remaining time."""

from __future__ import annotations

import pytest

from rehearsal.binaries.pins import Program
from rehearsal.binaries.progress import Estimate, Phase, ProgressEvent, line_reporter

PROGRAMS = [Program(name, "family", name, (), "", seconds) for name, seconds in (("one", 10.0), ("two", 20.0), ("three", 70.0))]


def test_the_estimate_begins_with_the_measured_seconds_and_follows_what_really_went() -> None:
    estimate = Estimate(PROGRAMS)
    assert estimate.remaining("one", 0.0) == pytest.approx(100.0)
    assert estimate.remaining("one", 4.0) == pytest.approx(96.0)
    estimate.finished("one", 5.0)
    assert estimate.remaining("one", 5.0) == pytest.approx(45.0)
    assert estimate.remaining("two", 0.0) == pytest.approx(45.0)


def test_a_program_that_takes_longer_than_expected_makes_the_rest_longer_too() -> None:
    estimate = Estimate(PROGRAMS)
    estimate.finished("one", 5.0)
    assert estimate.remaining("two", 40.0) == pytest.approx(140.0)


def test_plain_lines_come_at_beginning_and_end_and_every_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    said: list[str] = []
    tell = line_reporter(said.append)
    tell(ProgressEvent(Phase.STARTS, "one", 0.0, 1, 3, 100.0))
    for _ in range(700):
        now[0] += 0.1
        tell(ProgressEvent(Phase.RUNS, "one", now[0] - 1000.0, 1, 3, 30.0))
    tell(ProgressEvent(Phase.ENDS, "one", 70.0, 1, 3, 20.0))
    assert said == [
        "binaries: making one (1 of 3); about 100 s to go, by estimate",
        "binaries: making one (1 of 3), 30 s; about 30 s to go, by estimate",
        "binaries: making one (1 of 3), 60 s; about 30 s to go, by estimate",
        "binaries: one (1 of 3) is ready after 70 s; about 20 s to go, by estimate",
    ]


def test_who_waits_for_another_process_is_told_at_once_and_then_every_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    said: list[str] = []
    tell = line_reporter(said.append)
    for _ in range(70):
        tell(ProgressEvent(Phase.WAITS, "process 7: etcd, 1 of 8", now[0] - 1000.0))
        now[0] += 0.5
    assert said == [
        "binaries: waiting for another gpufleet that builds them (process 7: etcd, 1 of 8), 0 s",
        "binaries: waiting for another gpufleet that builds them (process 7: etcd, 1 of 8), 30 s",
    ]
