"""Says what a place inside is to hold, as the process that wants it tells the one that is it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.plan.model import RegionPlan
from rehearsal.binaries.find import Engines
from rehearsal.local_cluster.hub.member_selection import MemberLimit


@dataclass(frozen=True)
class HubRequest:
    """folder keeps everything, scenario is a name or file (None: as it is kept), factor Azure's seconds per second here."""

    plan: RegionPlan
    folder: Path
    scenario: str | None
    factor: float
    engines: Engines
    most: MemberLimit
