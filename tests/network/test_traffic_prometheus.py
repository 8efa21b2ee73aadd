"""Prometheus scrapes the real exporter by the documented configuration; rules, dashboard, runbook and centre have what they need."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from fabric import CommandError, fabric
from traffic_exporter import PORT, eventually
from traffic_place import Place, place_in

from cni.traffic_dashboard import queries
from cni.traffic_rules import rules
from gpufleet.alerts import RUNBOOKS
from stacks.load import ROOT, load_plan

sys.path.insert(0, str(ROOT / "tests" / "runbooks"))
from runbook import Runbook

pytestmark = [
    pytest.mark.xdist_group("traffic-prometheus"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed (Debian package prometheus)"),
]
NODE = "dev-cpu-000-000000"
OWN, CENTRAL = "http://127.0.0.1:9090", "http://127.0.0.1:9091"


@dataclass
class Watched:
    """A place whose exporter is scraped by a Prometheus on the same machine, which sends on to a central one."""

    place: Place

    def ask(self, expression: str, of: str = OWN) -> list[dict[str, Any]]:
        """Return the result of an instant query."""
        path = f"{of}/api/v1/query?query={urllib.parse.quote(expression)}"
        answer = json.loads(self.place.machine.run("curl", "-sS", path))
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


def documented() -> dict[str, Any]:
    """The configuration of docs/traffic.md."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/traffic.md").read_text(), re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(block)
    return found


def configuration(place: Place, folder: Path) -> Path:
    """The documented one, asking every second, with what Kubernetes would tell of two pods, and the rules of the dev region."""
    config = documented()
    (job,) = config["scrape_configs"]
    # Debian's Prometheus is built without it.
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": ["gpufleet-system"]}}]
    job |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    job["static_configs"] = [
        {
            "targets": [target],
            "labels": {"__meta_kubernetes_pod_label_app_kubernetes_io_name": name, "__meta_kubernetes_pod_node_name": NODE},
        }
        for target, name in ((f"{place.machine.primary}:{PORT}", "gpufleet-traffic"), ("10.0.0.4:1", "dcgm-exporter"))
    ]
    (target,) = config["remote_write"]
    target |= {"url": f"{CENTRAL}/api/v1/write", "queue_config": {"batch_send_deadline": "200ms"}}
    document = rules("dev", load_plan("dev").clusters[0], RUNBOOKS)
    document["groups"][0]["interval"] = "1s"
    (folder / "dev.rules.yaml").write_text(yaml.safe_dump(document))
    config["rule_files"] = [str(folder / "dev.rules.yaml")]
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config))
    (folder / "central.yaml").write_text("{}\n")
    return path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("prometheus")
    with fabric() as azure, place_in(azure, folder) as place:
        path = configuration(place, folder)
        for config, port, *more in ((folder / "central.yaml", 9091, "--web.enable-remote-write-receiver"), (path, 9090)):
            data = f"--storage.tsdb.path={folder / str(port)}"
            words = ("prometheus", f"--config.file={config}", data, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error", *more)
            place.machine.inside.start(*map(str, words))
        pods = {name: place.machine.add_pod(name) for name in ("train-0", "train-1")}
        for name, pod in pods.items():
            place.runs(pod, "platform", name)
        made, ended = Watched(place), threading.Event()
        talk, other = place.talk(pods["train-0"]), place.talk(pods["train-1"])
        local = place.talk(pods["train-1"])
        talk.send(1, 10)

        def go_on() -> None:
            while not ended.wait(0.05):
                talk.send(20, 1000)
                talk.answer(5, 500)
                other.send(1, 100)
                local.send(1, 1)

        sender = threading.Thread(target=go_on)
        sender.start()
        try:
            eventually(lambda: bool(made_answers(made)), "the rules have been evaluated on two scrapes")
            yield made
        finally:
            ended.set()
            sender.join()


def made_answers(watched: Watched) -> list[dict[str, Any]]:
    try:
        return [row for row in watched.ask('team:pod_internet_bytes:rate5m{team="platform"} > 0') if float(row["value"][1]) > 0]
    except CommandError:
        # Prometheus does not listen yet.
        return []


def test_no_panel_of_the_dashboard_is_empty(watched: Watched) -> None:
    for title, expression in queries():
        eventually(
            lambda query=expression: bool(watched.ask(query.replace("$region", "dev").replace("$cluster", "dev"))),
            f"{title} shows something",
        )  # type: ignore[misc]


def test_what_is_told_of_pods_is_what_the_rules_count(watched: Watched) -> None:
    pods, rule = (
        f"sum(rate({one}[10s]))"
        for one in ('pod_internet_bytes_total{direction="out"}', 'iptables_bytes_total{chain="forward",rule=~".*-out"}')
    )
    eventually(lambda: bool(watched.ask(f"count_over_time({pods}[10s:1s]) > 9")), "ten seconds were scraped")
    (of_pods,), (of_rule,) = watched.ask(pods), watched.ask(rule)
    assert float(of_pods["value"][1]) == pytest.approx(float(of_rule["value"][1]), rel=0.1)
    assert watched.ask(f'node:internet_bytes:rate5m{{of="pods",node="{NODE}"}} > 0')


def test_only_the_exporter_is_scraped(watched: Watched) -> None:
    assert [row["metric"]["node"] for row in watched.ask('up{job="gpufleet-traffic"}')] == [NODE]


def test_the_machines_own_talk_with_itself_and_with_azure_is_no_internet_traffic(watched: Watched) -> None:
    for direction in ("out", "in"):
        (counted,) = watched.ask(f'rate(iptables_bytes_total{{chain="{"output" if direction == "out" else "input"}"}}[5m])')
        (left,) = watched.ask(f'node:internet_bytes:rate5m{{of="machine",direction="{direction}"}}')
        # Prometheus asks over loopback, and so do we.
        assert float(counted["value"][1]) > 100
        assert abs(float(left["value"][1])) < 1


def test_a_pod_keeps_its_own_name_and_nothing_of_it_is_sent_to_the_centre(watched: Watched) -> None:
    (pod,) = watched.ask('pod_internet_bytes_total{pod="train-0",direction="out"}')
    assert pod["metric"]["namespace"] == "platform"
    eventually(lambda: bool(watched.ask('team:pod_internet_bytes:rate5m{team="platform"}', CENTRAL)), "the centre has the teams")
    names = {row["metric"]["__name__"] for row in watched.ask('{__name__=~".+",job!="prometheus"}', CENTRAL)}
    assert {"namespace:pod_internet_bytes:rate5m", "node:internet_bytes:rate5m", "nat_gateway:internet:share"} <= names
    assert {"gpufleet_traffic_accounting_in_place", "gpufleet_traffic_resets_total"} <= names
    assert not [name for name in names if name.startswith(("pod_internet", "iptables_"))]


def test_three_steps_of_the_runbook_lead_to_the_pod(watched: Watched, tmp_path: Path) -> None:
    machine = watched.place.machine
    values = {"PROMETHEUS": OWN, "NODE_ADDRESS": machine.primary, "NAMESPACE": "platform"}
    inside = {**os.environ, "PATH": f"{_inside(machine.inside.name, tmp_path)}:{os.environ['PATH']}"}
    book = Runbook("egress-high", values, inside, tmp_path)
    assert 'namespace="platform"' in book.run("Which team and namespace").splitlines()[0]
    assert f'node="{NODE}"' in book.run("Which node").splitlines()[0]
    busiest = book.run("Which pod").splitlines()[0]
    assert 'pod="train-0"' in busiest
    assert float(busiest.split()[0]) > 10_000
    assert book.left == []


def _inside(namespace: str, folder: Path) -> Path:
    """A folder of programs of these names that run in the machine's namespace, as a person's do who is on the network."""
    for name in ("curl", "promtool"):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec ip netns exec {namespace} {shutil.which(name)} "$@"\n')
        program.chmod(0o755)
    return folder / "bin"
