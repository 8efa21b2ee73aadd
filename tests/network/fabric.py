"""The fabric for tests: Azure's network in namespaces, with the pinned CNI plugins; skipped with the reason where none can be made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rehearsal.binaries.find import BinariesMissingError, cni_plugins
from tests.support.azure_network import namespaces, network
from tests.support.azure_network.cni_calls import CniError, Sandbox
from tests.support.azure_network.machine import CONFLIST, SETTINGS, Machine, Pod
from tests.support.azure_network.namespaces import Capture, CommandError, Namespace
from tests.support.azure_network.network import BEHIND_NAT, INTERNET, NAT_GATEWAY, OTHER_INTERNET, Azure
from tests.support.azure_network.platform_services import IMDS, WIRE_SERVER, Answer, Metadata

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
    "CniError",
    "CommandError",
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
    except BinariesMissingError as error:
        pytest.skip(str(error))
    with network.fabric(plugins, secondaries_leave) as made:
        yield made
