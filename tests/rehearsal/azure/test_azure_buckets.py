"""A token bucket is as full as Azure's documentation says, at every moment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rehearsal.azure.buckets import Bucket, Buckets, Level
from rehearsal.azure.call_rates import Rate
from rehearsal.azure.clock import REFERENCE_START


def test_the_published_example_comes_out_as_published() -> None:
    """Minutes 1 to 6 of the table under "How does Microsoft Compute determine throttling limits?"."""
    buckets, level = Buckets(), Level(("vm",), Rate(4, 12), "UpdateVM")
    before, throttled, after = [], [], []
    for minute, requests in enumerate((0, 8, 0, 13, 5, 0)):
        now = REFERENCE_START + 60 * minute
        before.append(buckets.at(level, now).tokens)
        throttled.append(sum(buckets.take([level], now) is not None for _ in range(requests)))
        after.append(buckets.at(level, now).tokens)
    assert before == [12, 12, 8, 12, 4, 4]
    assert throttled == [0, 0, 0, 1, 1, 0]
    assert after == [12, 4, 8, 0, 0, 4]


@given(st.lists(st.tuples(st.floats(0, 400), st.integers(1, 30)), max_size=30))
def test_a_bucket_lets_through_its_capacity_and_its_refills_and_no_more(steps: list[tuple[float, int]]) -> None:
    buckets, level, now, through = Buckets(), Level(("x",), Rate(4, 12), "x"), REFERENCE_START, 0
    for wait, requests in steps:
        now += wait
        through += sum(buckets.take([level], now) is None for _ in range(requests))
        bucket: Bucket = buckets.at(level, now)
        assert 0 <= bucket.tokens <= 12
        assert now - 60 < bucket.since <= now
        assert through <= 12 + 4 * ((now - REFERENCE_START) // 60)
        assert 1 <= bucket.wait(level.rate, now) <= 60
