"""Regions of several sizes for benchmarks: one cluster of southcentralus, repeated."""

from __future__ import annotations

import sys
import uuid
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from stacks.load import load_catalog, load_region

MODEL = "southcentralus"
ADDRESS_SPACE = "10.128.0.0/9"
"""Room for 31 clusters, a /14 each, and the hub; gpufleet's regions do not use it."""
CLUSTERS_PER_SUBSCRIPTION = 3
"""A fourth cluster of 7,500 machines would exceed what a subscription may hold in a region, 25,000."""
CREATE_AT_ONCE = 500
"""Machines of a pool that are created at once: nine pools share one image, whose 100 replicas serve 5,000 creates."""
QUOTA_VCPUS = {"standardNDSH100v5Family": 2_200_000, "standardDSv5Family": 2_000, "standardLSv3Family": 250}
"""Declared for each subscription, as three clusters need it."""


def write_region(clusters: int, folder: Path) -> Path:
    """Write the file of a region with a number of clusters (1 to 31), 7,500 nodes and 75 scale sets each, and return its path."""
    region = load_region(MODEL, load_catalog()).model_dump(mode="json", exclude_none=True)
    model = region["clusters"][0]
    subscriptions = [
        str(uuid.uuid5(uuid.NAMESPACE_DNS, f"subscription-{number}")) for number in range(-(-clusters // CLUSTERS_PER_SUBSCRIPTION))
    ]
    document = region | {
        "name": f"bench{clusters}",
        "subscription": subscriptions[0],
        "address_space": ADDRESS_SPACE,
        "quotas": [
            {"family": family, "vcpus": vcpus, "subscription": subscription}
            for subscription in subscriptions
            for family, vcpus in QUOTA_VCPUS.items()
        ],
        "clusters": [_cluster(model, slot, subscriptions[slot // CLUSTERS_PER_SUBSCRIPTION]) for slot in range(clusters)],
    }
    path = folder / f"{document['name']}.yaml"
    path.write_text(yaml.dump(document, Dumper=Quoting, sort_keys=False, width=sys.maxsize), encoding="utf-8")
    return path


class Quoting(yaml.SafeDumper):
    """YAML writer that quotes every text, because the reader refuses ambiguous words."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def _cluster(model: dict[str, Any], slot: int, subscription: str) -> dict[str, Any]:
    # A copy, because YAML writes a second occurrence of an object as a reference to the first.
    model = deepcopy(model)
    pools = [pool | {"create_at_once": CREATE_AT_ONCE} for pool in model["pools"]]
    return model | {"name": f"research-{slot}", "slot": slot, "subscription": subscription, "pools": pools}
