"""What a person writes about a cluster's pod network: who gives pods their addresses, and what of the internet each pod gets."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from components.spec.types import Model, OutsideRange, TeamName


class Cni(StrEnum):
    """Which plugins give pods the addresses of the machine's network card."""

    NATIVE = "native"
    AZURE_VNET = "azure-vnet"


class Internet(Model):
    """What of a machine's traffic with the internet each of its pods gets; what stays in 10.0.0.0/8 is never shaped."""

    shaping: bool = False
    """True shares the machine's rate among its pods; false only counts."""
    machine_mbit: Annotated[int, Field(ge=1, le=400_000)] = 1_000
    """Mbit/s that a machine's pods together may send to the internet, and as many that they may receive. At the default 50 machines fill a
    NAT gateway (50 Gbit/s: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource)."""
    floor_mbit: Annotated[int, Field(ge=1, le=400_000)] = 5
    """Mbit/s that every pod gets whatever the others do; times the pool's pods_per_node it must fit machine_mbit."""
    ceiling_mbit: Annotated[int, Field(ge=1, le=400_000)] | None = None
    """Mbit/s that one pod gets at most, though others leave theirs; machine_mbit where none is given."""
    weights: dict[TeamName, Annotated[int, Field(ge=1, le=100)]] = Field(default_factory=dict, max_length=200)
    """Share of a team's pods in what is left above the floors, relative to 1 for every other pod."""
    connections_per_pod: Annotated[int, Field(ge=100, le=64_512)] = 4_000
    """Connections to the internet that one pod may hold open, where shaping is true, so that none takes all SNAT ports of a NAT gateway
    (64,512 per public address: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource)."""


class PodNetwork(Model):
    """How pods get their addresses, and how they reach the internet."""

    cni: Cni = Cni.NATIVE
    """native: the CNI project's own plugins, told the machine's addresses by gpufleet-node; azure-vnet: Microsoft's plugins, which ask
    Azure for each pod (the image must carry packages.azure_cni)."""
    snat: bool = True
    """True gives packets of pods to the internet the machine's own address: Azure translates a card's primary address only
    (https://github.com/Azure/azure-container-networking/issues/93). False only where a NAT gateway was seen to translate the others too."""
    not_masqueraded: tuple[OutsideRange, ...] = Field(default=(), max_length=50)
    """IPv4 ranges outside 10.0.0.0/8 that pods reach under their own addresses, such as a site behind a gateway."""
    internet: Internet = Internet()
    """Shares of the internet."""
