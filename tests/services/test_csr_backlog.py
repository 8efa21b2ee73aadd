"""However many requests come, the undecided ones stay bounded and new ones get their turn."""

from __future__ import annotations

import signing_requests as made
from hypothesis import given
from hypothesis import strategies as st

from services.csr_approver.approval_loop import LONGEST_DELAY_SECONDS, PER_SENDER, Backlog
from services.csr_approver.verdicts import SigningRequest


def signing_request(name: str, sender: str = "a", seen: float = 0.0) -> SigningRequest:
    """A request without content."""
    return made.request(b"", name=name, username=sender, seen=seen)


def taken(backlog: Backlog, now: float) -> SigningRequest | None:
    """Take one due request."""
    return next(iter(backlog.take(now, 1)), None)


def test_the_request_that_was_seen_first_is_decided_first() -> None:
    backlog = Backlog()
    for name, seen in (("late", 2.0), ("early", 1.0), ("future", 9.0)):
        backlog.offer(signing_request(name, sender=name, seen=seen))
    order = []
    while (found := taken(backlog, 5.0)) is not None:
        order.append(found.name)
        backlog.discard(found.name)
    assert order == ["early", "late"]


def test_a_batch_has_one_request_of_each_sender_and_the_next_batch_another() -> None:
    backlog = Backlog()
    for number in range(3):
        for sender in "ab":
            backlog.offer(signing_request(f"{sender}{number}", sender=sender, seen=float(number)))
    batches = []
    while batch := backlog.take(9.0, 10):
        batches.append([one.name for one in batch])
        for one in batch:
            backlog.discard(one.name)
    assert batches == [["a0", "b0"], ["a1", "b1"], ["a2", "b2"]]


def test_a_request_that_is_offered_twice_is_held_once() -> None:
    backlog = Backlog()
    assert backlog.offer(signing_request("one"))
    assert backlog.offer(signing_request("one"))
    assert len(backlog) == 1


def test_a_postponed_request_comes_back_after_growing_delays_up_to_a_minute() -> None:
    backlog = Backlog()
    backlog.offer(signing_request("one"))
    now, delays = 0.0, []
    for _ in range(8):
        first = backlog.postpone("one", now)
        assert first is (now == 0.0)
        assert taken(backlog, now) is None
        later = next(now + second for second in range(1, 100) if taken(backlog, now + second) is not None)
        delays.append(later - now)
        now = later
    assert delays == [2, 4, 8, 16, 32, 60, 60, 60]
    assert delays[-1] == LONGEST_DELAY_SECONDS


def test_a_senders_oldest_request_gives_way_to_its_newest() -> None:
    backlog = Backlog()
    for number in range(PER_SENDER + 3):
        assert backlog.offer(signing_request(f"r{number}", seen=float(number)))
    assert len(backlog) == PER_SENDER
    found = taken(backlog, 99.0)
    assert found is not None
    assert found.name == "r3"


def test_requests_that_wait_for_ever_do_not_keep_new_ones_out() -> None:
    backlog = Backlog(in_all=10)
    for number in range(10):
        backlog.offer(signing_request(f"bogus{number}", sender=f"s{number}"))
        backlog.postpone(f"bogus{number}", 1.0)
    assert backlog.offer(signing_request("real", sender="kubelet", seen=1.0))
    assert len(backlog) == 10
    found = taken(backlog, 1.0)
    assert found is not None
    assert found.name == "real"


def test_a_full_backlog_of_requests_that_nobody_has_looked_at_takes_no_more() -> None:
    backlog = Backlog(in_all=3)
    for number in range(3):
        assert backlog.offer(signing_request(f"r{number}", sender=f"s{number}"))
    assert not backlog.offer(signing_request("one more", sender="other"))
    assert len(backlog) == 3


def test_an_answer_of_azure_makes_the_requests_of_its_scale_set_due_and_no_others() -> None:
    backlog = Backlog()
    for scale_set in ("frontier-a-000", "frontier-a-0001", "frontier-b-000"):
        backlog.offer(signing_request(scale_set, sender=f"system:node:{scale_set}-00000a"))
        backlog.postpone(scale_set, 0.0)
    backlog.hasten(1.0, "frontier-a-000")
    found = taken(backlog, 1.0)
    assert found is not None
    assert found.name == "frontier-a-000"
    backlog.discard(found.name)
    assert taken(backlog, 1.0) is None
    backlog.hasten(1.0)
    assert taken(backlog, 1.0) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from(["offer", "discard", "postpone", "hasten"]), st.integers(0, 30), st.integers(0, 6)),
        max_size=200,
    )
)
def test_the_bounds_hold_and_nothing_is_lost_whatever_happens(events: list[tuple[str, int, int]]) -> None:
    backlog, now, senders = Backlog(in_all=8), 0.0, {}
    for action, number, sender in events:
        now += 1.0
        name = f"r{number}"
        if action == "offer":
            backlog.offer(signing_request(name, sender=senders.setdefault(name, f"s{sender}"), seen=now))
        elif action == "discard":
            backlog.discard(name)
        elif action == "hasten":
            backlog.hasten(now)
        elif (found := taken(backlog, now)) is not None:
            backlog.postpone(found.name, now)
        assert len(backlog) <= 8
    left = len(backlog)
    while (found := taken(backlog, now + LONGEST_DELAY_SECONDS)) is not None:
        backlog.discard(found.name)
        left -= 1
    assert left == len(backlog) == 0
