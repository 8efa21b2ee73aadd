#!/usr/bin/env python3
"""Ansible inventory of a region's control plane: one group per etcd cluster, with its planned members."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from components.boot import etcd_flags
from components.plan.model import ETCD_CLIENT_PORT, ClusterPlan, EtcdMemberPlan, EtcdPlan
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan

USER = "gpufleet"


class UnknownClusterError(ValueError):
    """A cluster that the region does not contain."""


def inventory(region: str, api_servers: dict[str, list[str]]) -> dict[str, Any]:
    """Return the groups CLUSTER_etcd, CLUSTER_events and CLUSTER_api of a region.

    api_servers contains addresses by cluster, because instances of a scale set have no planned ones. InvalidFileError, UnknownClusterError.
    """
    plan = load_plan(region)
    for name in sorted(api_servers.keys() - {cluster.name for cluster in plan.clusters}):
        raise UnknownClusterError(name)
    groups: dict[str, Any] = {}
    hosts: dict[str, Any] = {}
    for cluster in plan.clusters:
        for etcd in (cluster.etcd, cluster.events_etcd):
            groups[f"{cluster.name}_{etcd.role}".replace("-", "_")] = {
                "hosts": [member.name for member in etcd.members],
                "vars": _group_variables(cluster, etcd),
            }
            hosts |= {member.name: _member(etcd, member) for member in etcd.members}
        addresses = api_servers.get(cluster.name, [])
        groups[_api(cluster)] = {"hosts": addresses}
        hosts |= {address: {"ansible_user": USER} for address in addresses}
    return {**groups, "_meta": {"hostvars": hosts}}


def _api(cluster: ClusterPlan) -> str:
    return f"{cluster.name}_api".replace("-", "_")


def _group_variables(cluster: ClusterPlan, etcd: EtcdPlan) -> dict[str, Any]:
    """Return the variables that all members of an etcd cluster share."""
    first = etcd_flags.secrets_of(etcd, etcd.members[0])
    return {
        "etcd_members": [
            {
                "name": member.name,
                "client_url": f"https://{member.dns_name}:{ETCD_CLIENT_PORT}",
                "peer_url": etcd_flags.peer_url(member),
            }
            for member in etcd.members
        ],
        "etcd_token": etcd.token,
        "etcd_authority": first.path(first.stored[0]),
        "etcd_subscription": cluster.subscription,
        "etcd_resource_group": cluster.resource_group,
        "etcd_api_group": _api(cluster),
        "etcd_api_servers": cluster.api_servers.count,
    }


def _member(etcd: EtcdPlan, member: EtcdMemberPlan) -> dict[str, Any]:
    """Return a member's address and the paths of its certificate and key."""
    secrets = etcd_flags.secrets_of(etcd, member)
    certificate, key = (secrets.path(name) for name in secrets.stored[1:])
    return {"ansible_host": member.address, "ansible_user": USER, "etcd_certificate": certificate, "etcd_key": key}


def _api_server_addresses(text: str) -> dict[str, list[str]]:
    """Return addresses of API servers by cluster; ValueError for any other JSON."""
    addresses = json.loads(text)
    if not isinstance(addresses, dict) or not all(
        isinstance(some, list) and all(isinstance(one, str) for one in some) for some in addresses.values()
    ):
        raise ValueError(text)
    return addresses


def main() -> int:
    region = os.environ.get("GPUFLEET_REGION", "")
    if not region:
        print("GPUFLEET_REGION is not set: name the region, for example GPUFLEET_REGION=dev", file=sys.stderr)
        return 1
    try:
        addresses = _api_server_addresses(os.environ.get("GPUFLEET_API_SERVERS", "{}"))
    except ValueError:
        print('GPUFLEET_API_SERVERS is no JSON object of addresses by cluster, such as {"dev": ["10.55.130.5"]}', file=sys.stderr)
        return 1
    try:
        print(json.dumps(inventory(region, addresses), indent=1))
    except InvalidFileError as error:
        print(error, file=sys.stderr)
        return 1
    except UnknownClusterError as error:
        print(f"GPUFLEET_API_SERVERS names a cluster {error} that {region} does not have", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
