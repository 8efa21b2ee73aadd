"""Hub namespace: Linux namespaces with the hub's addresses, in which Azure's model and the clusters run for another process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, cast

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from rehearsal.binaries.find import Binaries, find_binaries
from rehearsal.local_cluster.hub.launch import ROOT, in_namespaces_of, in_new_namespaces
from rehearsal.local_cluster.hub.member_selection import MemberLimit

TRY_SECONDS, ENDING_SECONDS = 20.0, 60.0
SHOWN_LINES = 5
LOG, REGION = "world.log", "region"
ONE_SERVER = MemberLimit()


class HubNetworkError(GpufleetError):
    """The hub namespace cannot be created, or ended early: the reason and a remedy."""


@dataclass(frozen=True)
class HubNamespace:
    """A running hub namespace: the prefix of commands that run in it, and the environment by which they find Azure."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class HubRequest:
    """Settings that the hub process reads from its standard input.

    folder stores all state. scenario is a name or file, or None for the stored one. factor is seconds of Azure's time per second.
    """

    plan: RegionPlan
    folder: Path
    scenario: str | None
    factor: float
    binaries: Binaries
    limit: MemberLimit


@cache
def unavailable_reason() -> str | None:
    """Return why this machine cannot create a hub namespace, in one sentence, or None if it can. It creates one to find out."""
    if sys.platform != "linux":
        return f"network namespaces need Linux, and this is {sys.platform}; use a Linux machine"
    tried = (*in_new_namespaces(["10.255.255.254"], "10.255.255.254"), "/bin/true")
    try:
        done = subprocess.run(tried, capture_output=True, text=True, timeout=TRY_SECONDS, check=False)  # noqa: S603 ours
    except subprocess.TimeoutExpired:
        return f"namespaces could not be created within {TRY_SECONDS:.0f} s; run as root, outside of a container"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"namespaces end with status {done.returncode}"])[-1]


@contextmanager
def hub_namespace(
    plan: RegionPlan,
    folder: Path,
    *,
    scenario: str | None = None,
    factor: float = 60.0,
    limit: MemberLimit = ONE_SERVER,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[HubNamespace]:
    """Run a region's hub namespace, with its embedded Azure and clusters, until the context ends.

    folder stores Azure and the clusters' data for the next run. scenario is a name or file, or None for the stored one. factor is seconds
    of Azure's time per second. `say` gets sentences about the clusters, from another thread.
    The namespace ends with this process, however that ends, and kills everything that was started by `command`.
    Raises HubNetworkError, and BinariesMissingError if the clusters' programs are missing and cannot be built.
    """
    if reason := unavailable_reason():
        raise HubNetworkError(reason)
    programs = find_binaries(say)
    folder = folder.absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _claim(folder / REGION, plan.name)
        log = (folder / LOG).open("wb")
    except OSError as error:
        raise HubNetworkError(f"{error.filename or folder}: {error.strerror or error}; give another directory") from None
    with log:
        process = subprocess.Popen(  # noqa: S603 ours
            (
                *in_new_namespaces(_addresses(plan), plan.hub.resolver_address),
                sys.executable,
                "-m",
                "rehearsal.local_cluster.hub.hub_process",
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
    ready: Future[dict[str, str]] = Future()
    ending = threading.Event()
    listener = threading.Thread(target=_listen, args=(process, folder / LOG, ready, ending, say), name="hub process", daemon=True)
    listener.start()
    try:
        _send(process, pickle.dumps(HubRequest(plan, folder, scenario, factor, programs, limit)))
        yield HubNamespace(in_namespaces_of(process.pid), ready.result())
    finally:
        ending.set()
        _end(process)
        listener.join()


def _claim(mark: Path, region: str) -> None:
    """Write a folder's region; raise HubNetworkError if the folder belongs to another region."""
    stored = mark.read_text(errors="replace").strip() if mark.exists() else ""
    if stored not in ("", region):
        raise HubNetworkError(f"{mark.parent} holds the region {stored[:80]}, not {region}; give another directory")
    mark.write_text(f"{region}\n")


def _addresses(plan: RegionPlan) -> list[str]:
    """Return the addresses that a program in the hub's network must reach."""
    servers = [cluster.api_servers for cluster in plan.clusters]
    return [plan.hub.resolver_address, *(one.endpoint_address or one.address for one in servers)]


def _send(process: subprocess.Popen[bytes], request: bytes) -> None:
    """Write the request to the process; a process that has already ended has reported the reason."""
    pipe = cast("IO[bytes]", process.stdin)
    with suppress(BrokenPipeError):
        pipe.write(request)
        pipe.flush()


def _listen(
    process: subprocess.Popen[bytes], log: Path, ready: Future[dict[str, str]], ending: threading.Event, say: Callable[[str], None]
) -> None:
    """Forward the lines of the hub process until it ends."""
    try:
        with cast("IO[bytes]", process.stdout) as lines:
            for line in lines:
                message = json.loads(line)
                if "ready" in message:
                    ready.set_result(message["ready"])
                elif "refused" in message:
                    ready.set_exception(HubNetworkError(message["refused"]))
                else:
                    say(message["say"])
    finally:
        last = " / ".join(log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]) or "its log is empty"
        if not ready.done():
            ready.set_exception(HubNetworkError(f"the hub process ended before Azure was ready: {last}; see {log}"))
        elif not ending.is_set():
            say(f"the hub process ended early, and with it everything in its namespaces: {last}; see {log}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the hub process in order; kill it if that takes too long."""
    with suppress(BrokenPipeError):
        cast("IO[bytes]", process.stdin).close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
