"""Region file model of the pod network: the CNI plugins and each pod's share of the internet connection."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from components.spec.types import Model, OutsideRange, TeamName

MOST_MBIT = 400_000
"""Mbit/s of a machine or of a pod."""


class Cni(StrEnum):
    """CNI plugins that assign addresses of the machine's network interface to pods."""

    NATIVE = "native"
    AZURE_VNET = "azure-vnet"


class Internet(Model):
    """Share of each pod in its machine's internet traffic; traffic within 10.0.0.0/8 is never shaped."""

    shaping: bool = False
    """True: divide the machine's rate among its pods. False: only count traffic."""
    machine_mbit: Annotated[int, Field(ge=1, le=MOST_MBIT)] = 1_000
    """Mbit/s that all pods of a machine together may send to the internet, and the same rate for receiving. With the default, 50 machines
    fill a NAT gateway (50 Gbit/s: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource)."""
    floor_mbit: Annotated[int, Field(ge=1, le=MOST_MBIT)] = 5
    """Guaranteed Mbit/s of each pod; multiplied by the pool's pods_per_node, it must not exceed machine_mbit."""
    ceiling_mbit: Annotated[int, Field(ge=1, le=MOST_MBIT)] | None = None
    """Maximum Mbit/s of one pod, also if other pods are idle; machine_mbit if not given."""
    weights: dict[TeamName, Annotated[int, Field(ge=1, le=100)]] = Field(default_factory=dict, max_length=200)
    """Weight of a team's pods when the rate above the floors is divided; every other pod has weight 1."""
    connections_per_pod: Annotated[int, Field(ge=100, le=64_512)] = 4_000
    """Maximum open connections of one pod to the internet if shaping is true. It prevents one pod from using all SNAT ports of a NAT
    gateway (64,512 per public address: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource)."""


class PodNetwork(Model):
    """Pod addresses and internet access of pods."""

    cni: Cni = Cni.NATIVE
    """native: the plugins of the CNI project, with the machine's addresses from gpufleet-node. azure-vnet: Microsoft's plugins, which
    request the addresses from Azure for each pod (the image must contain packages.azure_cni)."""
    snat: bool = True
    """True: packets from pods to the internet get the machine's own address, because Azure translates only an interface's primary address
    (https://github.com/Azure/azure-container-networking/issues/93). Set false only if you have verified that
    your NAT gateway translates the other addresses too."""
    not_masqueraded: tuple[OutsideRange, ...] = Field(default=(), max_length=50)
    """IPv4 ranges outside 10.0.0.0/8 that pods reach with their own addresses, for example a site behind a gateway."""
    internet: Internet = Internet()
    """Shares of the internet connection."""
