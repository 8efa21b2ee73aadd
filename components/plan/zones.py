"""Which zones something that serves a whole region lies in: all of them."""

from __future__ import annotations

from components.spec.pool import Zone

ALL_ZONES = tuple(zone.value for zone in Zone)
"""Zones of every zone-redundant front end, public address and public prefix."""
