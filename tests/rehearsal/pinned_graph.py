"""The text of a rehearsed graph that goldens pin and tests compare, without values that differ from run to run."""

from __future__ import annotations

import json
import re
from typing import Any

from rehearsal.program.graph import Graph, mask

KEYS = re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
"""Certificates and keys are real, so they differ from run to run, as join tokens do."""
TOKEN_NAME = re.compile(r"^bootstrap-token-[a-z0-9]{6}$")


def lasting(value: Any, key: str = "") -> Any:
    """A value without what differs from run to run; boot files have goldens of their own."""
    if isinstance(value, dict):
        return {name: lasting(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [lasting(item, key) for item in value]
    if key in ("customData", "custom_data_sha256"):
        return "[boot files]"
    if key == "token-id":
        return "[token]"
    if isinstance(value, str):
        return TOKEN_NAME.sub("bootstrap-token-[token]", KEYS.sub("[PEM]", value))
    return value


def pinned(graph: Graph) -> str:
    """Every resource's type, name, parent, dependencies, options and inputs, in the order of names."""
    resources = {
        f"{item.type.rpartition(':')[2]} {item.name}": {
            "type": item.type,
            "parent": item.parent and item.parent.rpartition("::")[2],
            "dependencies": [urn.rpartition("::")[2] for urn in item.dependencies],
            "protect": item.protect,
            "ignoreChanges": list(item.ignore_changes),
            "inputs": lasting(mask(item.inputs)),
        }
        for item in graph
    }
    return json.dumps(resources, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
