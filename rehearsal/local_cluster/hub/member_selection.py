"""Selection of the control plane machines that run locally: no more than necessary, because a desk cannot run a whole region."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rehearsal.local_cluster.hub.saved_members import EtcdData
from rehearsal.local_cluster.provisioned_machines import API_SERVER, ETCD, EVENTS, ProvisionedMachine


@dataclass(frozen=True)
class MemberLimit:
    """Upper limit per cluster: API servers, and for each etcd cluster all members or a quorum.

    An API server with its neighbours takes 550 MB and 8 s of CPU time to start, an etcd member 50 MB and 1 s. An etcd cluster cannot start
    with fewer members than a quorum of those in the boot files; more members make no difference that a client can see.
    """

    api_servers: int = 1
    all_members: bool = False


def quorum(members: int) -> int:
    """Return the number of members that are a quorum: https://etcd.io/docs/v3.6/faq/#what-is-failure-tolerance"""
    return members // 2 + 1


def select_machines(
    found: Iterable[ProvisionedMachine],
    running: Iterable[ProvisionedMachine],
    planned: Mapping[str, int],
    limit: MemberLimit,
    data_of: Callable[[ProvisionedMachine], EtcdData],
) -> tuple[ProvisionedMachine, ...]:
    """Return the machines to run: running ones stay, and members with etcd's data on their disks come before new ones.

    planned is the number of members per role. An API server must be on; a member that is off counts too, because no other member has its
    data.
    """
    machines = tuple(found)
    present = {identity(one) for one in running}

    def members(role: str) -> tuple[ProvisionedMachine, ...]:
        rows = [one for one in machines if one.role == role]
        rows.sort(key=lambda one: (identity(one) not in present, data_of(one)))
        return tuple(rows[: planned[role] if limit.all_members else quorum(planned[role])])

    servers = [one for one in machines if one.role == API_SERVER and one.on]
    servers.sort(key=lambda one: identity(one) not in present)
    return (*members(ETCD), *members(EVENTS), *servers[: limit.api_servers])


def identity(machine: ProvisionedMachine) -> tuple[str, ...]:
    """Return the identity of a machine: it differs for a later machine of the same name, and after a disk was replaced."""
    return (machine.name, machine.vm_id, machine.os_disk, machine.local_disk)
