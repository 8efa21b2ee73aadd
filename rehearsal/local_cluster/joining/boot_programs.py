"""Boot programs of machines, loaded as modules from the same files and run on a machine of the model."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import components.boot
from cni.node.machine import Link
from cni.node.metadata_service import parse_machine
from cni.node.settings import Settings
from cni.node.status import max_pods

FILES = Path(components.boot.__path__[0]) / "files"
_NEVER_JOINED = Path(os.devnull) / "joined"


class _Network:
    """Replacement for the kernel's choice of a source address, which is the primary address on a real machine."""

    AF_INET = SOCK_DGRAM = 0

    def __init__(self, address: str) -> None:
        self._address = address

    def socket(self, *_: int) -> _Network:
        return self

    def __enter__(self) -> _Network:
        return self

    def __exit__(self, *_: object) -> None: ...

    def connect(self, _: tuple[str, int]) -> None: ...

    def getsockname(self) -> tuple[str, int]:
        return self._address, 0


@cache
def _load(name: str) -> ModuleType:
    """Return a program of components/boot/files as a module of this process."""
    spec = importlib.util.spec_from_file_location(f"gpufleet_machine_{name}", FILES / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{FILES / name}.py is not a Python program")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _join() -> Any:
    module = _load("join")
    # The machines have never joined, even if a file exists on this machine at the path of a node's certificate.
    module.JOINED = _NEVER_JOINED  # type: ignore[attr-defined]
    return module


def machine_identity(document: dict[str, Any]) -> tuple[str, str]:
    """Return address and provider id of a machine with this metadata document, as gpufleet-join computes them, with its errors."""
    join = _join()
    network = document["network"]
    join.socket = _Network(network["interface"][0]["ipv4"]["ipAddress"][0]["privateIpAddress"])
    own, _ = join.own_address(network)
    return str(own), str(join.provider_id(document["compute"]))


def max_pods_of(settings: Settings, network: dict[str, Any]) -> int:
    """Return the maximum number of pods of a machine with this network document, as gpufleet-node computes it, with its errors."""
    card = network["interface"][0]
    mac = str(card["macAddress"]).lower()
    # The one link that a machine has before any pod.
    link = Link(
        name="eth0",
        mac=":".join(mac[at : at + 2] for at in range(0, len(mac), 2)),
        mtu=settings.mtu,
        addresses=(str(card["ipv4"]["ipAddress"][0]["privateIpAddress"]),),
        enslaved=False,
        default_route=True,
    )
    return max_pods(settings, parse_machine(network, (link,)))


def wait_seconds(spread: float, tries: int, vm_id: str) -> float:
    """Return the seconds that gpufleet-join waits before a try."""
    return float(_join().wait_seconds(spread, tries, vm_id))


def fetch_error() -> type[Exception]:
    """Return the error of gpufleet-fetch-secrets for a value of the wrong kind."""
    refused: type[Exception] = _load("fetch_secrets").Refused
    return refused


def fetched_files(manifest: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    """Return the files that gpufleet-fetch-secrets writes, by path. It raises its own error for a value of the wrong kind."""
    program: Any = _load("fetch_secrets")
    for name, kind in manifest["secrets"].items():
        program.check(name, kind, values[name])
    return dict(program.files_of(manifest, values))
