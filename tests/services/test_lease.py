"""One candidate holds the lease; another takes it only when it was not renewed for its whole duration."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.csr_approver.leadership import LEASE_SECONDS, RENEW_SECONDS, REQUEST_SECONDS, lease_held_by_another

TIMES = st.floats(0, 1e6)


def test_a_lease_without_a_holder_and_ones_own_is_free_to_take() -> None:
    assert not lease_held_by_another("", "me", 100.0, 15.0, 100.0)
    assert not lease_held_by_another("me", "me", 100.0, 15.0, 100.0)


def test_anothers_lease_is_its_own_until_its_duration_after_the_last_change_that_we_saw() -> None:
    assert lease_held_by_another("other", "me", 100.0, 15.0, 114.9)
    assert not lease_held_by_another("other", "me", 100.0, 15.0, 115.0)


@given(TIMES, TIMES)
def test_of_two_candidates_that_see_the_same_lease_one_at_most_holds_it(changed_at: float, now: float) -> None:
    assert not (lease_held_by_another("a", "a", changed_at, 15.0, now) and lease_held_by_another("a", "b", changed_at, 15.0, now))


def test_a_holder_has_tried_to_renew_and_failed_before_another_may_take_over() -> None:
    assert RENEW_SECONDS + 2 * REQUEST_SECONDS < LEASE_SECONDS
