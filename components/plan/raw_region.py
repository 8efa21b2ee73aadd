"""Parts of a raw region document, whose values may be missing or of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.plan.invalid_value import Path, Raw
from components.spec.images import Role

CONTROL_PLANE_ROLES = {"api_servers": Role.API_SERVER, "etcd": Role.ETCD, "events_etcd": Role.ETCD}


def mappings(parent: Raw, path: Path) -> Iterator[tuple[Path, Raw]]:
    """Yield the mappings in the list under the last key of path in parent, with their paths."""
    items = parent.get(str(path[-1]))
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, Mapping):
            yield (*path, index), item


def control_plane_groups(cluster: Raw) -> Iterator[tuple[str, Role, Raw]]:
    """Yield the machine groups of a cluster's control plane that are mappings: key, role and group."""
    plane = cluster.get("control_plane")
    for key, role in CONTROL_PLANE_ROLES.items():
        group = plane.get(key) if isinstance(plane, Mapping) else None
        if isinstance(group, Mapping):
            yield key, role, group
