"""Who holds which of the machine's addresses, as the traffic exporter has learnt it from the kubelet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

HOLDERS_PATH = Path("/run/gpufleet/traffic/holders.json")


@dataclass(frozen=True)
class Holder:
    """The pod that holds an address; team is its namespace where that is a team's, else empty."""

    namespace: str
    pod: str
    team: str


def read_holders(path: Path = HOLDERS_PATH) -> dict[str, Holder]:
    """Holders by address; nobody where the file is missing or is not what the exporter writes.

    It decides weights alone: a pod that is not known here is treated as one of no team, and must not be the reason that nothing is kept.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {address: holder for address, entry in document.items() if (holder := _holder(entry))}


def write_holders(path: Path, holders: Mapping[str, Holder]) -> None:
    """Put holders into the file so that a reader finds all of the old or all of the new ones."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps({address: asdict(holder) for address, holder in sorted(holders.items())}, indent=1) + "\n")
    new.replace(path)


def _holder(entry: object) -> Holder | None:
    if not isinstance(entry, dict):
        return None
    values = [entry.get(key) for key in ("namespace", "pod", "team")]
    texts = [value for value in values if isinstance(value, str)]
    return Holder(*texts) if len(texts) == len(values) else None
