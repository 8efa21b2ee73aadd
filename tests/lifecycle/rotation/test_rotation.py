"""Tests of the decision core: each change of state, its repetition after a crash, faults, and reasons for which nodes wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from driven_run import STARTED, DrivenRun, kinds

from components.spec.tenancy import Replacement
from lifecycle.rotation.calendar import Calendar, Freeze
from lifecycle.rotation.model import ROTATION, ActionKind, Freshness, Load, NodeState, Task, Transition, Verdict
from lifecycle.rotation.policy import Growth
from lifecycle.rotation.rotation import InvalidTransitionError

S, A = NodeState, ActionKind


def test_an_idle_node_goes_through_every_state() -> None:
    run = DrivenRun()
    assert kinds(run.step()) == [(A.CORDON, ("n0",))]
    run.see("n0", cordoned_by=ROTATION)
    assert kinds(run.step(5)) == [(A.REIMAGE, ("n0",))]
    run.see("n0", current=True, replaced_at=run.now + 60, ready=False)
    run.step(60)
    run.see("n0", ready=True, booted_at=run.now + 60)
    run.step(60)
    run.see("n0", verdict=Verdict.PASSED)
    step = run.step(60)
    assert kinds(step) == [(A.UNCORDON, ("n0",))]
    assert step.finished
    states = [S.CORDONED, S.DRAINING, S.DRAINED, S.REPLACING, S.JOINING, S.PREFLIGHT, S.READY]
    assert [one.to for one in run.journal] == states


def test_a_removed_machine_is_deleted_and_frees_its_budget() -> None:
    run = DrivenRun(2, Task.REMOVE, machines=1)
    run.step()
    run.see("n0", cordoned_by=ROTATION)
    assert kinds(run.step(5)) == [(A.DELETE, ("n0",))]
    run.see("n0", exists=False, cordoned_by="")
    assert kinds(run.step(60)) == [(A.CORDON, ("n1",))]
    assert run.state("n0") is S.REMOVED
    run.crash()
    run.see("n1", cordoned_by=ROTATION)
    assert kinds(run.step(5)) == [(A.DELETE, ("n1",))]
    run.see("n1", exists=False, cordoned_by="")
    assert run.step(60).finished


@pytest.mark.parametrize(
    ("state", "action"),
    [(S.CORDONED, A.CORDON), (S.DRAINING, A.EVICT), (S.REPLACING, A.REIMAGE)],
)
def test_a_process_that_replays_the_journal_repeats_the_action_of_a_state(state: NodeState, action: ActionKind) -> None:
    run = DrivenRun()
    run.bring_to(state)
    assert run.state() is state
    run.crash()
    assert kinds(run.step(1)) == [(action, ("n0",))]


@pytest.mark.parametrize("state", [S.JOINING, S.PREFLIGHT])
def test_a_process_that_replays_the_journal_waits_in_a_state_without_an_action(state: NodeState) -> None:
    run = DrivenRun()
    run.bring_to(state)
    run.crash()
    assert (run.step(1).actions, run.state()) == ((), state)


def test_a_process_that_replays_the_journal_removes_the_cordon_of_a_ready_node() -> None:
    run = DrivenRun()
    run.bring_to(S.PREFLIGHT)
    run.see("n0", verdict=Verdict.PASSED)
    run.step(60)
    run.crash()
    assert kinds(run.step(1)) == [(A.UNCORDON, ("n0",))]


def test_a_process_that_replays_the_journal_signals_a_job_again() -> None:
    run = DrivenRun()
    run.run_gang("g", "n0")
    run.step()
    run.see("n0", cordoned_by=ROTATION)
    assert kinds(run.step(5)) == [(A.SIGNAL_CHECKPOINT, ("n0",))]
    run.crash()
    assert kinds(run.step(1)) == [(A.SIGNAL_CHECKPOINT, ("n0",))]


def test_a_transition_that_cannot_follow_is_refused() -> None:
    with pytest.raises(InvalidTransitionError, match="n0 cannot change from pending to joining"):
        DrivenRun().rotation.replay([Transition("n0", S.JOINING, STARTED, "")])
    with pytest.raises(InvalidTransitionError, match="x is not in the run"):
        DrivenRun().rotation.replay([Transition("x", S.CORDONED, STARTED, "")])


@pytest.mark.parametrize("verdict", [Verdict.TRANSIENT, Verdict.HARDWARE])
def test_a_failed_attempt_is_repeated_with_a_longer_back_off_until_the_last(verdict: Verdict) -> None:
    run = DrivenRun()
    run.bring_to(S.PREFLIGHT)
    waits = []
    for _ in range(3):
        run.see("n0", verdict=verdict)
        run.step(60)
        if run.state() is S.FAILED:
            break
        failed = run.last()
        assert failed.until is not None
        waits.append(failed.until - failed.at)
        kind = A.REPLACE if verdict is Verdict.HARDWARE else A.REIMAGE
        assert kinds(run.step(waits[-1] - 1)) == []
        assert kinds(run.step(1)) == [(kind, ("n0",))]
        run.see("n0", verdict=Verdict.UNKNOWN, replaced_at=run.now + 60, booted_at=run.now + 60)
        run.step(60)
    assert (run.state(), waits) == (S.FAILED, [60.0, 120.0])


def test_a_configuration_fault_fails_at_once_and_an_operator_can_retry_it() -> None:
    run = DrivenRun()
    run.bring_to(S.PREFLIGHT)
    run.see("n0", verdict=Verdict.CONFIGURATION)
    assert run.step(60).finished
    assert (run.state(), run.last().cause) == (S.FAILED, "preflight: configuration fault")
    run.journal += run.rotation.retry(run.now, "ada")
    assert (run.last().to, run.last().actor) == (S.DRAINED, "ada")
    assert kinds(run.step(1)) == [(A.REIMAGE, ("n0",))]


def test_an_error_of_azure_is_a_failed_attempt() -> None:
    run = DrivenRun(method=Replacement.REPLACE)
    run.bring_to(S.REPLACING)
    run.see("n0", operation_error="OverconstrainedAllocationRequest", operation_at=run.now + 30)
    run.step(30)
    assert (run.state(), run.last().attempt) == (S.DRAINED, 2)


def test_a_lost_request_is_repeated_and_a_running_one_is_not() -> None:
    run = DrivenRun()
    run.bring_to(S.REPLACING)
    assert kinds(run.step(119)) == []
    assert kinds(run.step(1)) == [(A.REIMAGE, ("n0",))]
    run.see("n0", operating=True)
    assert kinds(run.step(500)) == []


def test_the_first_canary_passes_before_other_nodes_start_and_the_window_grows() -> None:
    run = DrivenRun(8, canaries=1, growth=Growth(2, 3))
    (first,) = run.step().transitions
    run.bring_to(S.PREFLIGHT, first.node)
    run.see(first.node, verdict=Verdict.PASSED)
    run.step(60)
    others = [one.node for one in run.journal if one.to is S.CORDONED and one.node != first.node]
    assert (len(others), run.rotation.window("gpu")) == (2, 2)


def test_too_many_failures_stop_the_run_until_it_is_resumed() -> None:
    run = DrivenRun(2, machines=1, failed_share=0.0, failed_of=5)
    run.bring_to(S.PREFLIGHT)
    run.see("n0", verdict=Verdict.CONFIGURATION)
    step = run.step(60)
    assert step.stopped == "1 of the last 1 nodes failed, more than 0% of 5"
    run.see("n0", cordoned_by="", verdict=Verdict.PASSED)
    assert run.step(60).actions == ()
    run.rotation.resume()
    assert kinds(run.step(1)) == [(A.CORDON, ("n1",))]


@pytest.mark.parametrize(
    ("freshness", "reason"),
    [
        (Freshness(STARTED - 121, STARTED, STARTED), "the last complete reading of nodes is 121 s old, more than 120 s"),
        (Freshness(STARTED, STARTED - 200, STARTED), "the last complete reading of jobs is 200 s old, more than 120 s"),
        (Freshness(STARTED, STARTED, STARTED - 300), "the last complete reading of Azure is 300 s old, more than 120 s"),
        (Freshness(STARTED, STARTED, STARTED, "page 3 of nodes"), "the last reading is incomplete: page 3 of nodes"),
        (Freshness(STARTED, STARTED, STARTED, throttled_until=STARTED + 60), "Azure throttles requests"),
    ],
)
def test_nothing_starts_on_old_incomplete_or_throttled_readings(freshness: Freshness, reason: str) -> None:
    step = DrivenRun().step(0, freshness)
    assert (step.transitions, [one.reason for one in step.waits]) == ((), [reason])


def test_a_time_out_does_not_count_while_readings_are_old() -> None:
    run = DrivenRun()
    run.bring_to(S.JOINING)
    old = Freshness(run.now, run.now, run.now)
    assert run.step(4_000, old).transitions == ()
    run.see("n0", ready=True, booted_at=run.now - 3_900)
    run.step(1)
    assert run.state() is S.PREFLIGHT


def test_a_cordon_of_another_owner_cancels_a_start_and_stays() -> None:
    run = DrivenRun(2)
    run.run_gang("g", "n0", "n1")
    run.step()
    run.see("n0", cordoned_by="health")
    run.see("n1", cordoned_by=ROTATION)
    assert kinds(run.step(5)) == [(A.UNCORDON, ("n1",))]
    assert (run.state("n0"), run.state("n1")) == (S.PENDING, S.PENDING)
    run.see("n1", cordoned_by="")
    assert run.step(500).waits[0].reason == "n0 is cordoned by health"


def test_a_node_that_cannot_be_drained_is_blocked_and_put_back_into_service() -> None:
    run = DrivenRun()
    run.bring_to(S.DRAINING)
    assert kinds(run.step(3_600)) == [(A.UNCORDON, ("n0",))]
    assert (run.state(), run.last().cause) == (S.BLOCKED, "1 pods could not be evicted in time")


def test_gangs_that_share_a_node_start_and_drain_together_after_their_checkpoints() -> None:
    run = DrivenRun(3)
    run.run_gang("g", "n0", "n1")
    run.run_gang("h", "n1", "n2", load=Load.HIGH)
    step = run.step()
    assert sorted(one.node for one in step.transitions) == ["n0", "n1", "n2"]
    run.see("n0", "n1", cordoned_by=ROTATION)
    assert run.step(5).transitions == ()
    run.see("n2", cordoned_by=ROTATION)
    (signal,) = run.step(5).actions
    assert (signal.kind, sorted(signal.nodes), signal.until) == (A.SIGNAL_CHECKPOINT, ["n0", "n1", "n2"], run.now + 1_800)
    (evict,) = run.step(1_800).actions
    assert (evict.kind, sorted(evict.nodes)) == (A.EVICT, ["n0", "n1", "n2"])


def test_a_gang_larger_than_the_budget_waits_until_its_nodes_are_idle() -> None:
    run = DrivenRun(3, machines=2)
    run.run_gang("g", "n0", "n1", "n2")
    step = run.step()
    assert [one.reason for one in step.waits] == ["gang g needs 3, more than the budget of 2 of cluster; it starts when idle"]
    run.gangs.clear()
    run.see("n0", "n1", "n2", gangs=(), load=Load.EMPTY, pods=0)
    assert len(run.step(60, ended=["g"]).transitions) == 2


def test_idle_nodes_start_before_jobs_and_the_cheapest_job_first() -> None:
    run = DrivenRun(4, machines=4, starts_per_minute=1)
    run.run_gang("cheap", "n0")
    run.now -= 3_600
    run.run_gang("dear", "n1")
    run.now += 3_600
    run.see("n2", load=Load.NORMAL, pods=1)
    started = []
    for _ in range(4):
        started += [one.node for one in run.step(60).transitions if one.to is S.CORDONED]
    assert started == ["n3", "n2", "n0", "n1"]


def test_nodes_that_wait_too_long_are_given_up_with_the_reason() -> None:
    run = DrivenRun(give_up_after=7_200.0)
    run.see("n0", cordoned_by="operator")
    assert run.step().next_at == STARTED + 7_200
    assert run.step(7_200).finished
    assert (run.state(), run.last().cause) == (S.BLOCKED, "not started in time: n0 is cordoned by operator")
    run.see("n0", cordoned_by="")
    run.journal += run.rotation.retry(run.now, "ada")
    assert kinds(run.step(1)) == [(A.CORDON, ("n0",))]


def test_explain_gives_each_pending_node_one_reason() -> None:
    run = DrivenRun(5, machines=1)
    run.run_gang("g", "n1", "n2")
    run.see("n3", cordoned_by="health")
    run.step()
    reasons = {name: wait.reason for wait, names in run.rotation.explain(run.now) for name in names}
    assert sorted(reasons) == sorted(f"n{number}" for number in range(5) if run.state(f"n{number}") is S.PENDING)
    assert reasons["n1"] == reasons["n2"]
    frozen = DrivenRun(1, calendar=Calendar((), (Freeze(date(2026, 1, 1), date(2027, 1, 1), "launch"),)))
    frozen.step()
    ((wait, names),) = frozen.rotation.explain(frozen.now)
    assert (wait.reason, names) == ("frozen: launch", ("n0",))


def test_a_stopped_run_continues_what_has_started() -> None:
    run = DrivenRun(2, machines=1)
    run.step()
    run.rotation.stop("operator")
    run.see("n0", cordoned_by=ROTATION)
    step = run.step(5)
    assert (kinds(step), step.stopped) == ([(A.REIMAGE, ("n0",))], "operator")


def test_a_machine_that_passes_its_tests_too_late_is_not_replaced_under_new_jobs() -> None:
    run = DrivenRun()
    run.bring_to(S.PREFLIGHT)
    assert run.state() is S.PREFLIGHT
    run.see("n0", cordoned_by="")
    run.step(run.policy.timeouts.preflight)
    assert run.last().cause == "has no preflight verdict in time"
    run.see("n0", verdict=Verdict.PASSED, pods=1, load=Load.NORMAL)
    step = run.step(run.policy.timeouts.back_off)
    assert (kinds(step), step.finished) == ([], True)
    assert [one.to for one in step.transitions] == [S.PENDING, S.READY]


@pytest.mark.parametrize("pods", [0, 1])
def test_a_failed_machine_that_an_operator_has_put_back_into_service_is_drained_before_its_retry(pods: int) -> None:
    run = DrivenRun(2, machines=1, attempts=1)
    run.bring_to(S.REPLACING)
    run.see("n0", operation_error="Conflict", operation_at=run.now + 10)
    run.step(20)
    assert run.state() is S.FAILED
    # n1 uses the whole budget of the cluster.
    run.see("n1", cordoned_by="health")
    run.see("n0", cordoned_by="", verdict=Verdict.PASSED, pods=pods)
    run.step(5)
    run.journal += run.rotation.retry(run.now, "operator")
    step = run.step(5)
    assert (kinds(step), run.state()) == ([], S.PENDING)
    run.see("n1", cordoned_by="")
    assert kinds(run.step(200))[0][0] is A.CORDON


def test_a_drained_machine_that_starts_again_in_another_unit_gets_the_whole_time_for_its_checkpoint() -> None:
    run = DrivenRun(2)
    run.run_gang("g", "n0", "n1", load=Load.HIGH)
    run.step()
    run.see("n0", "n1", cordoned_by=ROTATION)
    run.step(5)
    # The cordon of n0 is removed while n1 still waits, and another job starts on n0.
    run.gangs["g"] = replace(run.gangs["g"], nodes=("n1",))
    run.see("n0", pods=0, gangs=(), load=Load.EMPTY, cordoned_by="", verdict=Verdict.PASSED)
    run.step(5)
    run.run_gang("h", "n0", load=Load.HIGH)
    run.step(200)
    run.see("n0", cordoned_by=ROTATION)
    run.step(5)
    assert (run.state("n0"), run.last("n0").evicting) == (S.DRAINING, False)
    run.step(1_800 - 205)
    assert (run.last("n1").evicting, run.last("n0").evicting) == (True, False)


def test_failed_canaries_stop_the_run_with_their_number_and_that_of_good_ones() -> None:
    run = DrivenRun(3, canaries=1, attempts=1)
    for name in ("n0", "n2"):
        run.step()
        run.see(name, cordoned_by=ROTATION)
        run.step(5)
        run.see(name, operation_error="Conflict", operation_at=run.now + 10)
        step = run.step(20)
    assert step.stopped == "2 canaries of pool gpu failed, and 0 of 1 passed"
    assert run.state("n1") is S.PENDING
