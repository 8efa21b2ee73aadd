"""An answer with fewer addresses than expected is taken only when it stays the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cni.node.machine import Machine
from cni.node.metadata_service import REPEATS, MetadataTrust

WHOLE = Machine("eth0", "00:0d:3a:01:02:03", "10.0.0.4", tuple(f"10.0.0.{last}" for last in range(5, 35)), 24)


def having(count: int) -> Machine:
    return replace(WHOLE, secondaries=WHOLE.secondaries[:count])


def test_a_whole_answer_is_taken_at_once() -> None:
    trust = MetadataTrust(30, None)
    assert trust.accept(WHOLE)
    assert (trust.accepted, trust.warnings()) == (WHOLE, [])


def test_a_short_answer_is_asked_again_and_then_taken_with_a_warning() -> None:
    trust = MetadataTrust(30, None)
    assert [trust.accept(having(29)) for _ in range(REPEATS)] == [False] * (REPEATS - 1) + [True]
    (warning,) = trust.warnings()
    assert "eth0 has 29 addresses for pods; planned are 30" in warning


def test_answers_that_grow_are_not_taken_before_they_are_whole() -> None:
    trust = MetadataTrust(30, None)
    assert not any(trust.accept(having(count)) for count in range(1, 30))
    assert trust.accept(WHOLE)


def test_a_card_that_lost_an_address_is_doubted_also_where_as_many_as_planned_are_left() -> None:
    trust = MetadataTrust(20, WHOLE)
    assert not trust.accept(having(29))
    assert trust.accepted == WHOLE


def test_another_own_address_is_doubted() -> None:
    trust = MetadataTrust(30, WHOLE)
    assert not trust.accept(replace(WHOLE, primary="10.0.0.40"))


def test_one_short_answer_among_whole_ones_changes_nothing() -> None:
    trust = MetadataTrust(30, WHOLE)
    for _ in range(3 * REPEATS):
        assert not trust.accept(having(3))
        assert trust.accept(WHOLE)
    assert trust.accepted == WHOLE


def test_more_addresses_than_before_are_taken_at_once() -> None:
    trust = MetadataTrust(30, having(30))
    more = replace(WHOLE, secondaries=(*WHOLE.secondaries, "10.0.0.99"))
    assert trust.accept(more)


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(1, 30))
def test_what_is_taken_was_whole_or_was_heard_often_enough_in_a_row(counts: list[int], planned: int) -> None:
    trust, heard, taken = MetadataTrust(planned, None), list[int](), 0
    for count in counts:
        trust.accept(having(count))
        heard.append(count)
        now = 0 if trust.accepted is None else len(trust.accepted.secondaries)
        if now != taken:
            assert now == count
            assert (count >= planned and count >= taken) or heard[-REPEATS:] == [count] * REPEATS
        taken = now
