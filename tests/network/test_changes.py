"""Route changes in a real namespace start the next pass at once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fabric import Azure, Namespace

from cni.node.routes import GATHER_SECONDS, RouteEvents

LONG = 60.0
SOON = LONG / 2


@pytest.fixture
def place(azure: Azure) -> Namespace:
    return azure.machine("m1", "10.66.0.4", ["10.66.0.5"]).inside


@pytest.fixture
def changes(place: Namespace) -> Iterator[RouteEvents]:
    with place.within(RouteEvents) as found:
        yield found


def waited(changes: RouteEvents, seconds: float) -> float:
    began = time.monotonic()
    changes.wait(seconds)
    return time.monotonic() - began


def test_nothing_new_is_waited_for_as_long_as_asked(changes: RouteEvents) -> None:
    assert 1.0 <= waited(changes, 1.0) < SOON


def test_a_route_that_comes_ends_the_wait_once(place: Namespace, changes: RouteEvents) -> None:
    place.run("ip", "route", "add", "unreachable", "10.66.0.99")
    assert GATHER_SECONDS <= waited(changes, LONG) < SOON
    assert waited(changes, 1.0) >= 1.0


def test_so_many_routes_that_notices_are_lost_end_it_too(place: Namespace, changes: RouteEvents) -> None:
    lines = "".join(f"route add unreachable 10.{number >> 8}.{number & 255}.1\n" for number in range(1, 5000))
    place.run("ip", "-batch", "-", given=lines)
    assert waited(changes, LONG) < SOON
    assert waited(changes, 1.0) >= 1.0
