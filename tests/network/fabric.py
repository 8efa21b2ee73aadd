"""The fabric for tests: Azure's network in namespaces, with the pinned CNI plugins; skipped with the reason where none can be made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rehearsal.engines.find import EnginesMissing, cni_plugins
from rehearsal.fabric import azure, namespaces
from rehearsal.fabric.azure import BEHIND_NAT, INTERNET, NAT_GATEWAY, OTHER_INTERNET, Azure
from rehearsal.fabric.cni_calls import CniFailed, Sandbox
from rehearsal.fabric.machine import CONFLIST, SETTINGS, Machine, Pod
from rehearsal.fabric.namespaces import Capture, CommandFailed, Namespace
from rehearsal.fabric.services import IMDS, WIRE_SERVER, Answer, Metadata

__all__ = [
    "BEHIND_NAT",
    "CONFLIST",
    "IMDS",
    "INTERNET",
    "NAT_GATEWAY",
    "OTHER_INTERNET",
    "SETTINGS",
    "WIRE_SERVER",
    "Answer",
    "Azure",
    "Capture",
    "CniFailed",
    "CommandFailed",
    "Machine",
    "Metadata",
    "Namespace",
    "Pod",
    "Sandbox",
    "fabric",
]


@contextmanager
def fabric(secondaries_leave: bool = False) -> Iterator[Azure]:
    """A virtual network without machines, gone behind the block; with `secondaries_leave` the NAT gateway takes pods' own addresses."""
    if reason := namespaces.why_not():
        pytest.skip(reason)
    try:
        plugins = cni_plugins(lambda line: print(line, file=sys.__stderr__))
    except EnginesMissing as error:
        pytest.skip(str(error))
    with azure.fabric(plugins, secondaries_leave) as made:
        yield made
