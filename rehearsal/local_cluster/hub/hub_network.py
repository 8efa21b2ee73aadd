"""Decides how a process out here has a place inside the hub's network, and how that place ends with it."""

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
from rehearsal.binaries.find import engines
from rehearsal.local_cluster.hub.hub_request import HubRequest
from rehearsal.local_cluster.hub.launch import ROOT, in_namespaces_of, in_new_namespaces
from rehearsal.local_cluster.hub.member_selection import MemberLimit

TRY_SECONDS, ENDING_SECONDS = 20.0, 60.0
SHOWN_LINES = 5
LOG, REGION = "world.log", "region"
ONE_SERVER = MemberLimit()


class HubNetworkError(GpufleetError):
    """Why there is no place inside, in a sentence with a remedy."""


@dataclass(frozen=True)
class HubNamespace:
    """A place inside: command is what to put before a command's words to run it there, environment what it needs to find Azure."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


@cache
def unavailable_reason() -> str | None:
    """Why this machine has no place inside the hub's network, in one sentence; None where it has. Found out by making one."""
    if sys.platform != "linux":
        return f"a network of its own is made by means of Linux; this is {sys.platform}: use a Linux machine"
    tried = (*in_new_namespaces(["10.255.255.254"], "10.255.255.254"), "/bin/true")
    try:
        done = subprocess.run(tried, capture_output=True, text=True, timeout=TRY_SECONDS, check=False)  # noqa: S603 ours
    except subprocess.TimeoutExpired:
        return f"namespaces could not be made within {TRY_SECONDS:.0f} s; run as root, outside of a container"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"namespaces end with status {done.returncode}"])[-1]


@contextmanager
def hub_namespace(
    plan: RegionPlan,
    folder: Path,
    *,
    scenario: str | None = None,
    factor: float = 60.0,
    most: MemberLimit = ONE_SERVER,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[HubNamespace]:
    """A place inside the hub's network of a region, with its embedded Azure and the clusters that this has, while the context lasts.

    folder keeps Azure, and the clusters' data, for the next time; scenario is a name or file, None goes on in the one that is kept; factor
    is seconds of Azure's time per second here; `say` is told in sentences, from a thread of its own, what the clusters do. Everything that
    was started by `command` is killed with the place, which ends with this process, however that ends, and with the context in order.
    InsideRefused; BinariesMissingError where the clusters' programs are neither there nor can be built.
    """
    if reason := unavailable_reason():
        raise HubNetworkError(reason)
    programs = engines(say)
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
    listener = threading.Thread(target=_listen, args=(process, folder / LOG, ready, ending, say), name="world", daemon=True)
    listener.start()
    try:
        _give(process, pickle.dumps(HubRequest(plan, folder, scenario, factor, programs, most)))
        yield HubNamespace(in_namespaces_of(process.pid), ready.result())
    finally:
        ending.set()
        _end(process)
        listener.join()


def _claim(mark: Path, region: str) -> None:
    """Write down whose a folder is; InsideRefused where it is another region's, whose machines would be taken for ours."""
    held = mark.read_text(errors="replace").strip() if mark.exists() else ""
    if held not in ("", region):
        raise HubNetworkError(f"{mark.parent} holds the region {held[:80]}, not {region}; give another directory")
    mark.write_text(f"{region}\n")


def _addresses(plan: RegionPlan) -> list[str]:
    """Addresses that a program in the hub's network must reach."""
    servers = [cluster.api_servers for cluster in plan.clusters]
    return [plan.hub.resolver_address, *(one.endpoint_address or one.address for one in servers)]


def _give(process: subprocess.Popen[bytes], told: bytes) -> None:
    """Hand over what is wanted; one that has ended already has said why."""
    pipe = cast("IO[bytes]", process.stdin)
    with suppress(BrokenPipeError):
        pipe.write(told)
        pipe.flush()


def _listen(
    process: subprocess.Popen[bytes], log: Path, ready: Future[dict[str, str]], ending: threading.Event, say: Callable[[str], None]
) -> None:
    """Hand on what the world says, until it ends."""
    try:
        with cast("IO[bytes]", process.stdout) as lines:
            for line in lines:
                told = json.loads(line)
                if "ready" in told:
                    ready.set_result(told["ready"])
                elif "refused" in told:
                    ready.set_exception(HubNetworkError(told["refused"]))
                else:
                    say(told["say"])
    finally:
        last = " / ".join(log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]) or "it said nothing"
        if not ready.done():
            ready.set_exception(HubNetworkError(f"what stands for Azure has ended before it was there: {last}; see {log}"))
        elif not ending.is_set():
            say(f"what stands for Azure has ended by itself, and all that was inside with it: {last}; see {log}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the world end in order, and then at once."""
    with suppress(BrokenPipeError):
        cast("IO[bytes]", process.stdin).close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
