"""Every counted byte belongs to a pod or to nobody, in any order of events, and no reported counter decreases."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cni.exporter import state
from cni.exporter.attribution import LINGER_SECONDS, MOST_PODS, NOBODY, SAME_POD_SECONDS, UNNAMED_SECONDS, Pod, PodTraffic
from cni.exporter.counters import RuleTotals
from cni.node.addresses import Holder

A = "10.0.0.5"
Told = dict[tuple[tuple[str, str], str], int]


def pod(name: str, namespace: str = "vision", *, over: bool = False) -> Pod:
    return Pod(f"uid-{namespace}-{name}", namespace, name, over)


def exported(ledger: PodTraffic, now: float) -> Told:
    return {(owner, direction): value for owner, direction, value in ledger.samples(now, 0)}


class Machine:
    """Counters of a machine, and the ledger that follows them; every step takes a second."""

    def __init__(self) -> None:
        self.ledger, self.now, self.sent = PodTraffic(), 0.0, 0
        self.counters = {direction: {A: 0, "10.0.0.6": 0} for direction in ("out", "in")}
        self.reservations: dict[str, str] = {}
        self.ledger.count(self.counters)

    def sends(self, address: str, size: int) -> None:
        self.counters["out"][address] = self.counters["out"].get(address, 0) + size
        self.sent += size

    def step(self) -> None:
        self.now += 1
        self.ledger.count(self.counters)
        self.ledger.reserve(self.reservations, self.now)

    def names(self, *pods: Pod) -> None:
        self.now += 1
        self.ledger.count(self.counters)
        self.ledger.name({A: pods}, self.now)

    def of(self, name: str) -> int:
        self.ledger.count(self.counters)
        bill = self.ledger.bills.get(("vision", name))
        return bill.bytes["out"] if bill else 0


def test_what_a_pod_sends_before_the_kubelet_tells_of_it_is_its_own() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.sends(A, 700)
    machine.names(pod("a"))
    machine.sends(A, 30)
    assert machine.of("a") == 730


def test_an_address_that_changes_hands_is_counted_to_each_pod_for_its_time() -> None:
    machine = Machine()
    for number, name in enumerate(("a", "b", "c")):
        machine.reservations = {A: f"sandbox-{number}"}
        machine.step()
        machine.sends(A, 100 * (number + 1))
        machine.names(pod(name))
        machine.sends(A, 1)
        machine.reservations = {}
        machine.step()
    assert [machine.of(name) for name in "abc"] == [101, 201, 301]


def test_a_kubelet_that_still_tells_of_the_pod_before_does_not_give_it_the_next_ones_bytes() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    machine.reservations = {A: "sandbox-2"}
    machine.step()
    machine.sends(A, 50)
    machine.names(pod("a"))
    machine.names(pod("a", over=True), pod("b"))
    assert (machine.of("a"), machine.of("b")) == (0, 50)


def test_a_pod_whose_sandbox_is_made_again_keeps_its_bytes() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    machine.reservations = {A: "sandbox-2"}
    machine.step()
    machine.sends(A, 50)
    machine.now += SAME_POD_SECONDS
    machine.names(pod("a"))
    assert machine.of("a") == 50


def test_a_reservation_is_followed_before_it_is_written() -> None:
    machine = Machine()
    machine.reservations = {A: ""}
    machine.step()
    machine.sends(A, 5)
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    assert machine.of("a") == 5


def test_what_no_pod_is_ever_known_for_is_nobodys() -> None:
    machine = Machine()
    machine.sends(A, 9)
    machine.step()
    machine.ledger.tidy(machine.now)
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.sends(A, 90)
    machine.reservations = {}
    machine.step()
    machine.ledger.tidy(machine.now + UNNAMED_SECONDS + 1)
    assert machine.ledger.bills[NOBODY].bytes["out"] == 99


def test_what_was_counted_before_anybody_looked_is_nobodys() -> None:
    ledger = PodTraffic()
    ledger.count({"out": {A: 70}})
    ledger.reserve({A: "sandbox-1"}, 1.0)
    ledger.name({A: [pod("a")]}, 2.0)
    assert ledger.bills[NOBODY].bytes["out"] == 70


def test_a_reading_that_comes_late_gives_a_new_pod_what_it_sent_before() -> None:
    machine = Machine()
    for number, name in enumerate(("a", "b")):
        machine.step()
        machine.sends(A, 100 + number)
        machine.reservations = {A: f"sandbox-{number}"}
        machine.step()
        machine.names(pod(name))
        machine.reservations = {}
        machine.step()
    assert (machine.of("a"), machine.of("b")) == (100, 101)


def test_what_is_counted_long_before_the_next_pod_is_the_last_ones() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    machine.reservations = {}
    machine.step()
    machine.sends(A, 60)
    machine.step()
    machine.ledger.tidy(machine.now)
    machine.reservations = {A: "sandbox-2"}
    machine.step()
    machine.names(pod("b"))
    assert (machine.of("a"), machine.of("b")) == (60, 0)


def test_a_short_pod_is_known_when_the_kubelet_tells_of_it_only_after_its_end() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.sends(A, 90)
    machine.reservations = {}
    machine.step()
    machine.names(pod("a", over=True))
    assert machine.of("a") == 90


def test_without_reservations_the_kubelets_word_is_followed() -> None:
    machine = Machine()
    machine.names(pod("a"))
    machine.sends(A, 10)
    machine.names(pod("a"))
    machine.names(pod("a", over=True))
    machine.names(pod("b"))
    machine.sends(A, 20)
    assert (machine.of("a"), machine.of("b")) == (10, 20)
    assert machine.ledger.holders(frozenset({"vision"})) == {A: Holder("vision", "b", "vision")}


def test_a_counter_that_was_set_to_0_loses_nothing_that_was_seen_and_is_noticed() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    machine.sends(A, 500)
    assert machine.of("a") == 500
    machine.counters["out"][A] = 20
    assert machine.of("a") == 520
    assert machine.ledger.resets == 1


def test_a_pod_is_told_as_0_at_first_and_its_last_bytes_until_they_were_told() -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    machine.sends(A, 10)
    machine.reservations = {}
    machine.step()
    series = (("vision", "a"), "out")
    machine.ledger.tidy(1e6)
    assert exported(machine.ledger, 1e6)[series] == 0
    machine.ledger.tidy(1e6 + LINGER_SECONDS + 1)
    assert exported(machine.ledger, 1e6 + 1)[series] == 10
    machine.ledger.tidy(1e6 + LINGER_SECONDS)
    assert exported(machine.ledger, 1e6 + LINGER_SECONDS)[series] == 10
    machine.ledger.tidy(1e6 + LINGER_SECONDS + 2)
    assert series not in exported(machine.ledger, 1e6 + LINGER_SECONDS + 3)


def test_more_ended_pods_than_are_told_at_once_are_told_in_their_namespaces_sum() -> None:
    machine = Machine()
    for number in range(MOST_PODS + 50):
        machine.reservations = {A: f"sandbox-{number}"}
        machine.step()
        machine.sends(A, 7)
        machine.names(pod(f"pod-{number}"))
        machine.ledger.tidy(machine.now)
    assert len(machine.ledger.bills) <= MOST_PODS + 2
    assert sum(bill.bytes["out"] for bill in machine.ledger.bills.values()) == machine.sent


def test_what_changed_hands_while_nobody_looked_is_nobodys(tmp_path: Path) -> None:
    machine = Machine()
    machine.reservations = {A: "sandbox-1"}
    machine.step()
    machine.names(pod("a"))
    state.save(tmp_path, machine.ledger, RuleTotals())
    machine.sends(A, 40)
    machine.reservations = {A: "sandbox-2"}
    machine.ledger, _ = state.load(tmp_path)
    machine.ledger.resume(machine.reservations)
    machine.step()
    machine.sends(A, 2)
    machine.names(pod("b"))
    assert machine.ledger.bills[NOBODY].bytes["out"] == 40
    assert (machine.of("a"), machine.of("b")) == (0, 2)


ADDRESSES = st.sampled_from(("10.0.0.5", "10.0.0.6"))
NAMES = st.sampled_from(("a", "b", "c"))
STEPS = st.one_of(
    st.tuples(st.just("sends"), ADDRESSES, st.integers(0, 10_000)),
    st.tuples(st.just("adds"), ADDRESSES, NAMES),
    st.tuples(st.just("deletes"), ADDRESSES, NAMES),
    st.tuples(st.just("names"), ADDRESSES, NAMES),
    st.tuples(st.just("restarts"), ADDRESSES, NAMES),
    st.tuples(st.just("tells"), ADDRESSES, NAMES),
    st.tuples(st.just("tidies"), ADDRESSES, NAMES),
    st.tuples(st.just("waits"), ADDRESSES, st.integers(0, 1000)),
)


@given(st.lists(STEPS, max_size=60))
def test_no_byte_is_lost_and_nothing_that_was_told_falls_whatever_happens(steps: list[tuple[str, str, int | str]]) -> None:
    machine, before, forgotten = Machine(), Told(), 0
    for number, (what, address, value) in enumerate(steps):
        if what == "sends":
            machine.sends(address, int(value))
        elif what == "adds":
            machine.reservations[address] = f"{value}-{number // 3}"
        elif what == "deletes":
            machine.reservations.pop(address, None)
        elif what == "names":
            machine.ledger.name({address: [pod(str(value))]}, machine.now)
        elif what == "restarts":
            machine.ledger = reloaded(machine.ledger)
            machine.ledger.resume(machine.reservations)
        elif what == "waits":
            machine.now += int(value)
        elif what == "tidies":
            machine.ledger.tidy(machine.now)
        machine.step()
        now = exported(machine.ledger, machine.now)
        assert all(value >= before[series] for series, value in now.items() if series in before)
        waiting = sum(tenant.waiting["out"] for tenant in machine.ledger.tenants.values())
        waiting += sum(late["out"] for late in machine.ledger.late.values())
        # A pod that was told to its last byte is forgotten, and its bytes with it.
        forgotten += sum(value for (owner, way), value in before.items() if way == "out" and owner not in machine.ledger.bills)
        assert sum(bill.bytes["out"] for bill in machine.ledger.bills.values()) + waiting + forgotten == machine.sent
        assert NOBODY in machine.ledger.bills
        before = now


def reloaded(ledger: PodTraffic) -> PodTraffic:
    """Return the state that a restarted exporter loads."""
    with tempfile.TemporaryDirectory() as folder:
        state.save(Path(folder), ledger, RuleTotals())
        return state.load(Path(folder))[0]
