"""Tests of the modelled fleet: what each action does, when, and what it costs."""

import pytest

from lifecycle.rotation.model import ROTATION, Action, ActionKind, Load, NodeObservation, Verdict
from rehearsal.rotation.draws import Draws
from rehearsal.rotation.modelled_fleet import FLAKY_CHECK, FLAKY_OPERATION, HARDWARE, OPERATION_ERROR, Changes, ModelledFleet
from tests.rehearsal.rotation.small_fleets import CALM, DEAF, STARTED, fleet, population

BOOT, REIMAGE, KUBELET = 75, 90, 10


def act(one: ModelledFleet, kind: ActionKind, *numbers: int, until: float | None = None) -> None:
    machines = [one.machines[number].row for number in numbers]
    one.carry_out([Action(kind, tuple(machine.name for machine in machines), "test", machines[0].scale_set, until)])


def seen(changes: Changes, number: int = 0) -> NodeObservation:
    (found,) = (node for node in changes.nodes if node.name.endswith(f"-{number:03d}"))
    return found


def until_ready(one: ModelledFleet, after: int) -> NodeObservation:
    """Let time pass until the first machine has a verdict; return its last observation."""
    last = None
    while one.next_at is not None and one.next_at <= STARTED + after:
        changes = one.advance(one.next_at)
        last = next((node for node in changes.nodes if node.name.endswith("-000")), last)
        if last is not None and last.verdict is not Verdict.UNKNOWN and last.current:
            break
    assert last is not None
    return last


def test_a_cordon_is_visible_after_the_request_and_counts_as_unavailable() -> None:
    one = fleet(population([2]))
    act(one, ActionKind.CORDON, 0)
    assert one.advance(STARTED).nodes == []
    assert seen(one.advance(STARTED + 1)).cordoned_by == ROTATION
    assert one.unavailable == 1
    act(one, ActionKind.UNCORDON, 0)
    assert seen(one.advance(STARTED + 2)).cordoned_by == ""
    assert one.unavailable == 0


def test_a_gang_that_honours_the_signal_ends_everywhere_without_lost_work_and_restarts_when_all_machines_are_back() -> None:
    one = fleet(population([4], [[0, 1, 2]]))
    act(one, ActionKind.CORDON, 0)
    one.advance(STARTED + 1)
    act(one, ActionKind.SIGNAL_CHECKPOINT, 0, until=STARTED + 3_600)
    changes = one.advance(STARTED + 121)
    assert changes.ended_gangs == ["job-0"]
    assert {node.pods for node in changes.nodes} == {0}
    assert len(changes.nodes) == 3
    assert one.losses.work == 0.0
    act(one, ActionKind.UNCORDON, 0)
    one.advance(STARTED + 122)
    changes = one.advance(STARTED + 123)
    assert [gang.id for gang in changes.gangs] == ["job-0"]
    assert seen(changes, 2).gangs == ("job-0",)
    assert one.losses.waiting == pytest.approx(2 / 3_600 * 24)
    assert one.losses.interruptions == {"job-0": 1}
    assert one.work[0] == 1 + 120 + 1


def test_the_eviction_of_one_pod_ends_its_gang_and_loses_the_work_since_its_checkpoint() -> None:
    one = fleet(population([4], [[0, 1, 2]]), DEAF)
    act(one, ActionKind.SIGNAL_CHECKPOINT, 0, until=STARTED + 100)
    one.advance(STARTED + 100)
    act(one, ActionKind.EVICT, 0)
    assert one.advance(STARTED + 130).ended_gangs == ["job-0"]
    assert one.losses.work == pytest.approx((600 + 130) / 3_600 * 24)
    assert one.work[0] == 130


def test_an_eviction_later_than_the_deadline_is_no_work_of_the_machine() -> None:
    one = fleet(population([1], load=Load.LOW), DEAF)
    act(one, ActionKind.SIGNAL_CHECKPOINT, 0, until=STARTED + 100)
    one.advance(STARTED + 500)
    act(one, ActionKind.EVICT, 0)
    assert seen(one.advance(STARTED + 530)).pods == 0
    assert one.work[0] == 100 + 30


def test_a_reimaged_machine_writes_its_disk_boots_joins_and_gets_a_verdict() -> None:
    one = fleet(population([1]))
    act(one, ActionKind.REIMAGE, 0)
    assert seen(one.advance(STARTED)).operating
    written = seen(one.advance(STARTED + REIMAGE))
    assert (written.current, written.ready, written.replaced_at) == (True, False, STARTED + REIMAGE)
    joined = seen(one.advance(STARTED + REIMAGE + BOOT + KUBELET))
    assert (joined.ready, joined.booted_at, joined.verdict) == (True, STARTED + REIMAGE + BOOT, Verdict.UNKNOWN)
    assert until_ready(one, 3_600).verdict is Verdict.PASSED
    checks = one.work[0] - REIMAGE - BOOT - KUBELET
    assert 300 <= checks <= 480


def test_a_repeated_operation_has_no_effect_while_one_runs() -> None:
    one = fleet(population([1]))
    act(one, ActionKind.REIMAGE, 0)
    act(one, ActionKind.REIMAGE, 0)
    assert one.calls == (2, 0)
    assert one.machines[0].attempt == 1


def test_a_hardware_fault_lasts_until_the_machine_is_replaced() -> None:
    one = fleet(population([1]))
    one.machines[0].fault = HARDWARE
    for kind, verdict in (
        (ActionKind.REIMAGE, Verdict.HARDWARE),
        (ActionKind.REIMAGE, Verdict.HARDWARE),
        (ActionKind.REPLACE, Verdict.PASSED),
    ):
        act(one, kind, 0)
        assert until_ready(one, 10_000).verdict is verdict


def test_a_replaced_machine_does_not_exist_between_its_deletion_and_the_scale_sets_update() -> None:
    one = fleet(population([1]))
    act(one, ActionKind.REPLACE, 0)
    gone = seen(one.advance(STARTED + 60))
    assert (gone.exists, gone.operating) == (False, True)
    assert seen(one.advance(STARTED + 105)).replaced_at == STARTED + 105
    assert one.calls == (2, 0)


def test_a_flaky_machine_fails_once() -> None:
    one = fleet(population([1]))
    one.machines[0].fault = FLAKY_CHECK
    act(one, ActionKind.REIMAGE, 0)
    assert until_ready(one, 10_000).verdict is Verdict.TRANSIENT
    one.machines[0].fault = FLAKY_OPERATION
    act(one, ActionKind.REIMAGE, 0)
    assert one.next_at is not None
    failed = seen(one.advance(one.next_at))
    assert (failed.operation_error, failed.operating, failed.current) == (OPERATION_ERROR, False, False)
    act(one, ActionKind.REIMAGE, 0)
    assert until_ready(one, 10_000).verdict is Verdict.PASSED


def test_calls_beyond_the_rate_of_a_scale_set_wait_until_azure_accepts_them() -> None:
    one = fleet(population([20]))
    for number in range(13):
        act(one, ActionKind.REIMAGE, number)
    assert one.calls == (24, 1)
    assert one.throttled_until == STARTED + 60
    assert not one.machines[12].operating
    one.advance(STARTED + 60)
    assert one.calls == (26, 1)
    assert one.machines[12].operating
    assert one.throttled_until == 0


def test_a_job_that_ends_has_a_successor_on_its_machines() -> None:
    people = population([2], [[0, 1]])
    one = fleet(people)
    one.jobs[0].run += 1
    one.jobs[0].remaining = 100.0
    one._plan_run(one.jobs[0])
    assert one.advance(STARTED + 100).ended_gangs == ["job-0"]
    assert one.next_at is not None
    assert [gang.id for gang in one.advance(one.next_at).gangs] == ["job-0.1"]
    assert one.losses.gpu_hours == 0.0


def test_a_gang_runs_without_a_machine_that_the_rotation_has_given_up() -> None:
    one = fleet(population([2], [[0, 1]]))
    act(one, ActionKind.CORDON, 0)
    act(one, ActionKind.SIGNAL_CHECKPOINT, 0, until=STARTED + 3_600)
    one.advance(STARTED + 600)
    one.give_up(one.machines[0].row.name)
    assert [gang.id for gang in one.advance(STARTED + 601).gangs] == ["job-0"]


def test_the_share_of_failing_machines_is_that_of_the_conditions() -> None:
    one = fleet(population([5_000]), CALM.model_copy(update={"failing_share": 0.02, "hardware_share": 0.5}))
    faults = [machine.fault for machine in one.machines if machine.fault]
    assert len(faults) == pytest.approx(100, abs=25)
    assert faults.count(HARDWARE) == pytest.approx(50, abs=20)


def test_draws_depend_only_on_their_key_and_are_uniform() -> None:
    draws = Draws(7)
    values = [draws.uniform("boot", item, attempt) for item in range(500) for attempt in range(4)]
    assert values == [Draws(7).uniform("boot", item, attempt) for item in range(500) for attempt in range(4)]
    assert sum(values) / len(values) == pytest.approx(0.5, abs=0.02)
    assert len(set(values)) == len(values)
    assert [sum(part / 10 <= value < (part + 1) / 10 for value in values) for part in range(10)] == pytest.approx([200] * 10, abs=60)
    assert values[:4] != [Draws(8).uniform("boot", 0, attempt) for attempt in range(4)]
