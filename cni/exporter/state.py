"""State of the exporter on the host's disk, which survives its restarts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cni.exporter.attribution import AddressTenancy, PodBytes, PodTraffic
from cni.exporter.counters import RuleTotals

VERSION = 1
FILE = "ledger.json"


def save(folder: Path, ledger: PodTraffic, totals: RuleTotals) -> None:
    """Write the state atomically, so that a reader finds the old or the new one."""
    document = {
        "version": VERSION,
        "seen": ledger.seen,
        "late": ledger.late,
        "tenants": {address: asdict(tenant) for address, tenant in ledger.tenants.items()},
        "bills": [[*owner, asdict(bill)] for owner, bill in ledger.bills.items()],
        "rules": [[*rule, *totals.seen[rule], *total] for rule, total in totals.total.items()],
        "resets": [ledger.resets, totals.resets],
    }
    new = folder / f".{FILE}.{os.getpid()}"
    new.write_text(json.dumps(document, separators=(",", ":")))
    new.replace(folder / FILE)


def load(folder: Path) -> tuple[PodTraffic, RuleTotals]:
    """Return the saved state; an empty one where the file is missing or not from this version."""
    ledger, totals = PodTraffic(), RuleTotals()
    try:
        document = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return ledger, totals
    if not isinstance(document, dict) or document.get("version") != VERSION:
        return ledger, totals
    _fill(document, ledger, totals)
    return ledger, totals


def _fill(document: Mapping[str, Any], ledger: PodTraffic, totals: RuleTotals) -> None:
    ledger.seen.update(document["seen"])
    ledger.late.update(document["late"])
    ledger.tenants.update({address: _tenant(entry) for address, entry in document["tenants"].items()})
    ledger.bills.update({(namespace, name): PodBytes(**entry) for namespace, name, entry in document["bills"]})
    for chain, name, seen_packets, seen_bytes, packets, octets in document["rules"]:
        totals.seen[chain, name] = (seen_packets, seen_bytes)
        totals.total[chain, name] = (packets, octets)
    ledger.resets, totals.resets = document["resets"]


def _tenant(entry: Mapping[str, Any]) -> AddressTenancy:
    owner = entry["owner"]
    return AddressTenancy(**{**entry, "owner": tuple(owner) if owner else None})
