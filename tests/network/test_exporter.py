"""The exporter reports traffic exactly, to the byte, and needs no rights beyond those of its container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from counted import BACKENDS
from fabric import Azure
from traffic_exporter import NODE, Exporter, certificate, eventually, holders
from traffic_place import Place, place_in

from components.manifests.traffic import traffic_objects
from stacks.load import load_plan

pytestmark = pytest.mark.xdist_group("exporter")
in_both = pytest.mark.parametrize("place", [(backend, 8) for backend in BACKENDS], indirect=True, ids=BACKENDS)


@pytest.fixture
def place(azure: Azure, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    with place_in(azure, tmp_path, *getattr(request, "param", ())) as made:
        yield made


@in_both
def test_a_pods_bytes_and_the_machines_are_told_as_they_passed(place: Place) -> None:
    pod = place.machine.add_pod("a")
    talk = place.talk(pod)
    talk.send(30, 1000)
    place.runs(pod, "vision", "train-0")
    talk.send(5, 10)
    talk.answer(20, 700)
    assert place.exporter.pod("vision", "train-0") == (talk.sent, talk.answered)
    assert place.exporter.rule("forward", "openai traffic=internet-out") == talk.sent
    assert place.exporter.rule("forward", "openai traffic=internet-in") == talk.answered
    assert place.exporter.rule("forward", "openai traffic=internet-out", "iptables_packets_total") == 35
    assert place.exporter.value("gpufleet_traffic_accounting_in_place") == 1
    assert place.exporter.value("iptables_rules", ip_version="4", table="mangle", chain="forward") == 4


def test_a_namespace_that_is_no_teams_has_none(place: Place) -> None:
    pod = place.machine.add_pod("a")
    place.runs(pod, "kube-system", "coredns-1")
    talk = place.talk(pod)
    talk.send(1, 1)
    assert place.exporter.pod("kube-system", "coredns-1", "") == (talk.sent, 0)
    assert holders(place.exporter) == {pod.address: {"namespace": "kube-system", "pod": "coredns-1", "team": ""}}


def test_a_kubelet_that_is_not_the_nodes_own_is_not_believed(place: Place, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    place.exporter.stop()
    pod = place.machine.add_pod("a")
    place.kubelet.runs(pod, "vision", "train-0")
    place.kubelet.trust, _ = certificate(tmp_path / "other", NODE)
    stranger = Exporter(place.machine, place.kubelet).start()
    eventually(lambda: stranger.value("gpufleet_traffic_unnamed_addresses") == 1, "the address has no name")
    said = stranger.stop()
    assert f"https://127.0.0.1:10250/pods is not {NODE} by" in said
    assert "Traceback" not in said
    assert holders(stranger) == {}


def test_it_runs_with_the_capabilities_that_its_container_has(place: Place) -> None:
    (workload,) = [item for item in traffic_objects(load_plan("dev").clusters[0]) if item["kind"] == "DaemonSet"]
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    granted = container["securityContext"]["capabilities"]
    assert granted["drop"] == ["ALL"]
    names = ",".join(f"+{name.lower()}" for name in granted["add"])
    place.exporter.stop()
    wrapper = ("setpriv", "--bounding-set", f"-all,{names}", "--inh-caps", f"-all,{names}", "--no-new-privs")
    bound = Exporter(place.machine, place.kubelet, wrapper=wrapper).start()
    assert bound.value("gpufleet_traffic_accounting_in_place") == 1
    pod = place.machine.add_pod("a")
    place.kubelet.runs(pod, "vision", "train-0")
    eventually(lambda: pod.address in holders(bound), "the pod is known")
    assert bound.stop().count("\n") == 1


@pytest.mark.parametrize("lacking", ["NET_ADMIN", "NET_RAW"])
def test_it_needs_each_of_them(place: Place, lacking: str) -> None:
    left = {"NET_ADMIN": "+net_raw", "NET_RAW": "+net_admin"}[lacking]
    place.exporter.stop()
    wrapper = ("setpriv", "--bounding-set", f"-all,{left}", "--inh-caps", f"-all,{left}", "--no-new-privs")
    bound = Exporter(place.machine, place.kubelet, wrapper=wrapper).start()
    assert bound.value("gpufleet_traffic_accounting_in_place") == 0
    bound.stop()


def test_a_port_that_another_has_is_told_in_one_line(place: Place) -> None:
    second = place.machine.run("sh", "-c", f"{' '.join(place.exporter.command)} 2>&1", check=False)
    assert second.strip() == "10.0.0.4:9119: Address already in use; an address of this machine and a free port are needed"
