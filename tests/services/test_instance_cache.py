"""Azure receives one query at a time, at a bounded rate, and only about scale sets in its own list."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from services.csr_approver.approval_loop import LONGEST_BACK_OFF_SECONDS, QUERY_SPACING_SECONDS, REPEAT_SECONDS, InstanceCache
from services.csr_approver.verdicts import Instance

SETS = frozenset({"a", "b"})


def listed(read_at: float = 0.0) -> InstanceCache:
    """A cache to which Azure has listed two scale sets."""
    cache = InstanceCache()
    cache.request_reading("a", read_at)
    assert cache.next_query(read_at) == (True, None)
    cache.store_sets(SETS, read_at)
    return cache


def test_nothing_is_asked_when_nothing_is_wanted() -> None:
    assert InstanceCache().next_query(0.0) == (False, None)
    assert listed().next_query(1_000.0) == (False, None)


def test_the_list_of_scale_sets_is_asked_for_before_any_of_them() -> None:
    cache = InstanceCache()
    cache.request_reading("a", 0.0)
    assert cache.next_query(0.0) == (True, None)


def test_a_scale_set_that_azure_did_not_list_is_never_asked_about() -> None:
    cache = listed()
    for number in range(1_000):
        cache.request_reading(f"invented-{number}", 20.0)
    assert cache.next_query(20.0) == (True, None)
    cache.store_sets(SETS, 20.0)
    assert cache.next_query(40.0) == (False, None)


def test_one_question_is_followed_by_a_pause_and_the_same_one_by_a_longer_one() -> None:
    cache = listed()
    cache.request_reading("a", 10.0)
    assert cache.next_query(10.0) == (True, "a")
    cache.request_reading("b", 10.0)
    assert cache.next_query(10.0 + QUERY_SPACING_SECONDS - 0.1) == (False, None)
    assert cache.next_query(10.0 + QUERY_SPACING_SECONDS) == (True, "b")
    assert cache.next_query(10.0 + REPEAT_SECONDS - 0.1) == (False, None)
    assert cache.next_query(10.0 + REPEAT_SECONDS) == (True, "a")


def test_an_answer_that_began_too_early_leaves_the_question_open() -> None:
    cache = listed()
    cache.request_reading("a", 10.0)
    cache.next_query(10.0)
    cache.request_reading("a", 11.0)
    cache.store_instances("a", (), 10.0)
    assert cache.next_query(10.0 + REPEAT_SECONDS) == (True, "a")
    cache.store_instances("a", (), 10.0 + REPEAT_SECONDS)
    assert cache.next_query(1_000.0) == (False, None)


def test_an_answer_is_kept_by_name_with_the_time_at_which_it_was_asked_for() -> None:
    cache = listed()
    machine = Instance("a-000001", frozenset({"10.0.0.4"}), "succeeded")
    cache.store_instances("a", (machine,), 12.0)
    cached = cache.instances("a")
    assert cached is not None
    assert (cached.read_at, dict(cached.by_name)) == (12.0, {"a-000001": machine})
    assert cache.instances("b") is None


def test_a_scale_set_that_azure_lists_no_more_is_forgotten() -> None:
    cache = listed()
    cache.store_instances("a", (), 1.0)
    cache.request_reading("a", 2.0)
    cache.store_sets(frozenset({"b"}), 3.0)
    assert cache.instances("a") is None
    assert cache.next_query(100.0) == (False, None)


def test_after_a_failure_nothing_is_asked_for_a_time_that_doubles_and_ends_with_an_answer() -> None:
    cache = listed()
    cache.request_reading("a", 100.0)
    assert [cache.failed(100.0, None) for _ in range(10)][:3] == [4.0, 8.0, 16.0]
    assert cache.failed(100.0, None) == LONGEST_BACK_OFF_SECONDS
    assert cache.next_query(100.0 + LONGEST_BACK_OFF_SECONDS - 1) == (False, None)
    assert cache.next_query(100.0 + LONGEST_BACK_OFF_SECONDS) == (True, "a")
    cache.store_instances("a", (), 100.0 + LONGEST_BACK_OFF_SECONDS)
    assert cache.failed(0.0, None) == 4.0


def test_a_throttled_question_is_asked_again_only_when_azure_said() -> None:
    cache = listed()
    cache.request_reading("a", 100.0)
    assert cache.failed(100.0, 60.0) == 60.0
    assert cache.next_query(159.0) == (False, None)
    assert cache.next_query(160.0) == (True, "a")
    assert cache.failed(160.0, 1e9) == LONGEST_BACK_OFF_SECONDS


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "x", "y"]), st.floats(0.0, 5.0), st.booleans()), max_size=100))
def test_the_rate_of_questions_is_bounded_whatever_is_wanted(wants: list[tuple[str, float, bool]]) -> None:
    cache, now, requests = InstanceCache(), 0.0, []
    for scale_set, passed, fails in wants:
        now += passed
        cache.request_reading(scale_set, now)
        asking, chosen = cache.next_query(now)
        if not asking:
            continue
        requests.append((now, chosen))
        if fails:
            cache.failed(now, None)
        elif chosen is None:
            cache.store_sets(SETS, now)
        else:
            cache.store_instances(chosen, (), now)
    times = [at for at, _ in requests]
    assert all(later - earlier >= QUERY_SPACING_SECONDS for earlier, later in itertools.pairwise(times))
    for question in ("a", "b", None):
        own = [at for at, what in requests if what == question]
        assert all(later - earlier >= REPEAT_SECONDS for earlier, later in itertools.pairwise(own))
    assert {what for _, what in requests} <= {"a", "b", None}
