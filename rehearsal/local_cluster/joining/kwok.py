"""kwok for joined machines: processes, stages, identity, and intervals of heartbeats."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from components.boot.kubeconfig import document
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.joining.cluster_access import token_of
from rehearsal.local_cluster.joining.node_object import NodeSet
from rehearsal.local_cluster.joining.rbac import KWOK
from rehearsal.local_cluster.systemd.service_definition import ServiceDefinition

Json = dict[str, Any]
POD_ADDRESSES = "198.18.0.0/15"
"""Addresses of pods, from the block for measurements (https://www.rfc-editor.org/rfc/rfc2544): kwok hands them out by itself, and so knows
nothing of those that Azure gave to the machines."""

STAGES = ("node-fast", "node-heartbeat-with-lease", "pod-general")
"""kwok's own sets of stages by which nodes report and renew their leases, and pods go through all that they go through."""


@dataclass(frozen=True)
class KwokMode:
    """Settings with which kwok maintains nodes and pods.

    stages are sets of kwok's own stage files. lease_seconds is the duration of a node's lease, which is renewed every quarter of it; 0
    means no leases, and the controller manager must then wait longer for nodes. report_seconds is the interval of reports of an unchanged
    status, None for never. parallel is the number of nodes, and of pods, that change at once. With registered_ready, nodes are Ready from
    registration: kwok plays none of their stages and does not watch them.
    """

    stages: tuple[str, ...]
    lease_seconds: int
    report_seconds: int | None
    parallel: int = 16
    registered_ready: bool = False


def faithful(sets: Sequence[NodeSet]) -> KwokMode:
    """Return leases and reports as often as the machines' kubelets are configured. Raises ValueError if their settings differ."""
    heartbeats = {one.heartbeats for one in sets}
    if len(heartbeats) != 1:
        raise ValueError(
            f"kwok has one heartbeat interval for all nodes, and kubelet.yaml has {sorted(heartbeats)}: "
            "join only scale sets with the same one"
        )
    ((lease, report),) = heartbeats
    return KwokMode(STAGES, lease, report)


FAST = KwokMode(("node-fast", "pod-fast"), lease_seconds=0, report_seconds=None, registered_ready=True)
"""No leases and no reports: only with a controller manager that does not look for them, --node-monitor-grace-period=24h, and with nodes
that register as Ready."""
NODE, POD = "Node", "Pod"
NEVER = {"matchLabels": {"gpufleet.io/never": "true"}}
"""Selector of nothing. kwok's own for nodes looks for a condition, for which all of a node is made JSON at each event, in one goroutine;
where that is late, the API server ends kwok's watch, and kwok 0.8 begins each watch with all that is there:
https://github.com/kubernetes-sigs/kwok/blob/v0.8.0/pkg/utils/informer/event.go#L77"""


def configurations(binaries: Binaries, keeping: KwokMode) -> Mapping[str, str]:
    """Return the configuration and stages, YAML, of each kwok, by its name: https://kwok.sigs.k8s.io/docs/user/configuration/

    Where there are leases, nodes and pods have a kwok each. A kwok for both passes over the pods of a node while its cache has no lease
    for it. When it has made one it looks at them again, whether or not the cache has it by then; where it has not, they wait for ever. The
    lease of a machine that is set up anew goes with the node of its earlier life, so that is where it happens:
    https://github.com/kubernetes-sigs/kwok/blob/v0.8.0/pkg/kwok/controllers/controller.go#L279-L291
    """
    unplayed = {NODE} if keeping.registered_ready else set()
    if not keeping.lease_seconds:
        return {"kwok": _configuration(binaries, keeping, unplayed)}
    without_leases = replace(keeping, lease_seconds=0)
    return {
        "kwok-nodes": _configuration(binaries, keeping, {*unplayed, POD}),
        "kwok-pods": _configuration(binaries, without_leases, {NODE}),
    }


def _configuration(binaries: Binaries, keeping: KwokMode, unplayed: Set[str]) -> str:
    """Return one kwok's configuration. Stages of `unplayed` kinds exist and select nothing: without one for nodes kwok does not manage
    nodes, and without one for pods it watches them and does not respond."""
    options: Json = {
        "manageAllNodes": True,
        "cidr": POD_ADDRESSES,
        # kwok's own port would replace the kubelets' port in the nodes' status.
        "nodePort": 0,
        "enableDebuggingHandlers": False,
        "nodeLeaseDurationSeconds": keeping.lease_seconds,
        "nodePlayStageParallelism": keeping.parallel,
        "podPlayStageParallelism": keeping.parallel,
        "nodeLeaseParallelism": keeping.parallel,
        "podsOnNodeSyncParallelism": keeping.parallel,
    }
    first = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "metadata": {"name": "kwok"}, "options": options}
    stages = [stage for name in keeping.stages for file in binaries.stage_files(name) for stage in _stages(file, keeping, unplayed)]
    return yaml.dump_all([first, *stages], Dumper=yaml.CSafeDumper, sort_keys=False, width=200)


def _stages(file: Path, keeping: KwokMode, unplayed: Set[str]) -> list[Json]:
    """Return the stages of one of kwok's files, with the requested interval of node reports."""
    found = []
    for stage in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
        if stage and stage.get("kind") == "Stage":
            if stage["metadata"]["name"] == "node-heartbeat-with-lease" and keeping.report_seconds:
                every = keeping.report_seconds * 1_000
                # As kubelets do, a little early or late, so that nodes that joined together do not report together.
                stage["spec"]["delay"] = {"durationMilliseconds": every * 95 // 100, "jitterDurationMilliseconds": every * 105 // 100}
            if stage["spec"]["resourceRef"]["kind"] in unplayed:
                stage["spec"]["selector"] = NEVER
            found.append(stage)
    return found


def kwok_programs(binaries: Binaries, folder: Path, control: ControlPlane, keeping: KwokMode) -> tuple[ServiceDefinition, ...]:
    """Return each kwok of a control plane, with its files in its own folder. Raises ApiServerUnreachableError unless rights() were
    applied."""
    token = token_of(control.kubeconfig, KWOK)
    return tuple(_program(binaries, folder / name, control, token, text) for name, text in configurations(binaries, keeping).items())


def _program(binaries: Binaries, folder: Path, control: ControlPlane, token: str, text: str) -> ServiceDefinition:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    server = {"server": control.url, "certificate-authority": str(control.authority)}
    files = {
        "kwok.yaml": text.encode(),
        "token": token.encode(),
        "kubeconfig": document(server, {"tokenFile": str(folder / "token")}).encode(),
    }
    for name, content in files.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    argv = (str(binaries.program("kwok")), f"--config={folder / 'kwok.yaml'}", f"--kubeconfig={folder / 'kubeconfig'}", "-v=WARN")
    environment = {"HOME": str(folder), "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    return ServiceDefinition(f"rehearsal/{folder.name}", argv, environment, folder / "kwok.log", folder, restart_seconds=1.0)
