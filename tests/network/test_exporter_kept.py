"""No byte is lost or another pod's, whatever happens to pods, addresses, rules and to the exporter itself."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from counted import BACKENDS
from datagrams import Talk
from fabric import Azure, Pod
from traffic_exporter import eventually, holders
from traffic_place import Place, place_in

pytestmark = pytest.mark.xdist_group("exporter-kept")
NOBODY = ("", "", "")
in_both = pytest.mark.parametrize("place", [(backend, 8) for backend in BACKENDS], indirect=True, ids=BACKENDS)
with_two_addresses = pytest.mark.parametrize("place", [("nft", 2)], indirect=True, ids=["two-addresses"])


@pytest.fixture
def place(azure: Azure, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    with place_in(azure, tmp_path, *getattr(request, "param", ())) as made:
        yield made


@with_two_addresses
def test_pods_that_follow_one_another_on_two_addresses_have_each_their_own_bytes(place: Place) -> None:
    sent: dict[str, Talk] = {}
    for number in range(6):
        name = f"job-{number}"
        pod = place.machine.add_pod(name)
        sent[name] = place.talk(pod)
        sent[name].send(number + 1, 100 * number)
        place.runs(pod, "vision", name)
        sent[name].answer(number + 1, 10)
        place.ends(pod)
        place.kubelet.forgets(name)
    assert {name: place.exporter.pod("vision", name) for name in sent} == {name: (talk.sent, talk.answered) for name, talk in sent.items()}
    assert place.exporter.pod(*NOBODY) == (0, 0)


def test_pods_that_come_and_go_eight_at_once_have_each_their_own_bytes(place: Place) -> None:
    sent: dict[str, Talk] = {}

    def comes(number: int, turn: int) -> Pod:
        pod = place.machine.add_pod(f"{turn}-{number}")
        talk = sent[f"job-{turn}-{number}"] = place.talk(pod)
        talk.send(number + 1, 100 * (turn + 1))
        return pod

    with ThreadPoolExecutor(8) as pool:
        for turn in range(2):
            pods = list(pool.map(comes, range(8), [turn] * 8))
            for number, pod in enumerate(pods):
                place.kubelet.runs(pod, "vision", f"job-{turn}-{number}")
            eventually(lambda: len(holders(place.exporter)) == 8, "all are known")
            for number, pod in enumerate(pods):
                place.machine.delete_pod(pod)
                place.kubelet.forgets(f"job-{turn}-{number}")
            eventually(lambda: not holders(place.exporter), "nobody holds an address")
    assert {name: place.exporter.pod("vision", name)[0] for name in sent} == {name: talk.sent for name, talk in sent.items()}


@with_two_addresses
def test_what_a_pod_sent_that_nobody_ever_named_is_told_as_nobodys(place: Place) -> None:
    total = 0
    for number in range(3):
        pod = place.machine.add_pod(f"short-{number}")
        # One that is told of two pods at once cannot tell whose the bytes were.
        eventually(lambda: place.exporter.value("gpufleet_traffic_unnamed_addresses") == 1, "the exporter has seen the pod")
        talk = place.talk(pod)
        talk.send(3, 100)
        total += talk.sent
        place.machine.delete_pod(pod)
        eventually(lambda: place.exporter.value("gpufleet_traffic_unnamed_addresses") == 0, "the exporter has seen its end")
    # Two of the three had the same address, and the first of them had it before the other.
    eventually(lambda: place.exporter.pod(*NOBODY)[0] == talk.sent, "the pod that lost its address is counted to nobody")
    assert total == 3 * talk.sent


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_exporter_that_is_ended_loses_nothing_and_tells_no_less_than_before(place: Place, how: signal.Signals) -> None:
    pod = place.machine.add_pod("a")
    talk = place.talk(pod)
    place.runs(pod, "vision", "train-0")
    talk.send(10, 500)
    before = place.exporter.pod("vision", "train-0")
    place.exporter.stop(how)
    talk.send(10, 500)
    place.exporter.start()
    assert before == (talk.sent // 2, 0)
    assert place.exporter.value("pod_internet_bytes_total", namespace="vision", pod="train-0", team="vision", direction="out") == talk.sent
    assert place.exporter.value("gpufleet_traffic_resets_total") == 0


@with_two_addresses
def test_an_address_that_changes_hands_while_no_exporter_runs_is_nobodys_for_that_time(place: Place) -> None:
    first, second = place.machine.add_pod("a"), place.machine.add_pod("b")
    place.runs(first, "vision", "train-0")
    place.exporter.stop()
    missed = place.talk(first)
    missed.send(4, 100)
    place.machine.delete_pod(first)
    place.kubelet.forgets("train-0")
    third = place.machine.add_pod("c")
    assert third.address == first.address != second.address
    place.exporter.start()
    place.runs(third, "language", "eval-0")
    seen = place.talk(third)
    seen.send(2, 100)
    assert place.exporter.pod("language", "eval-0") == (seen.sent, 0)
    assert place.exporter.pod(*NOBODY) == (missed.sent, 0)


@in_both
def test_a_strangers_flush_is_noticed_and_nothing_that_was_told_falls(place: Place) -> None:
    pod = place.machine.add_pod("a")
    talk = place.talk(pod)
    place.runs(pod, "vision", "train-0")
    talk.send(10, 500)
    assert place.exporter.pod("vision", "train-0") == (talk.sent, 0)
    place.machine.run("iptables", "-t", "mangle", "-F")
    place.machine.run("ipset", "flush", "gpufleet-out")
    assert place.exporter.value("gpufleet_traffic_accounting_in_place") == 0
    assert place.exporter.pod("vision", "train-0") == (talk.sent, 0)
    assert place.exporter.rule("forward", "openai traffic=internet-out") == talk.sent
    place.machine.node("apply")
    after = place.talk(pod)
    after.send(1, 100)
    assert place.exporter.pod("vision", "train-0") == (talk.sent + after.sent, 0)
    assert place.exporter.rule("forward", "openai traffic=internet-out") == talk.sent + after.sent
    assert place.exporter.value("gpufleet_traffic_resets_total") > 0
    assert place.exporter.value("gpufleet_traffic_accounting_in_place") == 1


def test_a_pod_that_is_gone_is_told_until_its_last_bytes_were(place: Place) -> None:
    pod = place.machine.add_pod("a")
    talk = place.talk(pod)
    place.runs(pod, "vision", "train-0")
    talk.send(10, 500)
    place.ends(pod)
    place.kubelet.forgets("train-0")
    assert place.exporter.pod("vision", "train-0") == (talk.sent, 0)
