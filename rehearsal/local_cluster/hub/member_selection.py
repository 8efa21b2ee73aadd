"""Decides which of a control plane's machines run here: as many as are needed and no more, for two cores carry no region."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rehearsal.local_cluster.hub.saved_members import EtcdData
from rehearsal.local_cluster.provisioned_machines import API_SERVER, ETCD, EVENTS, ProvisionedMachine


@dataclass(frozen=True)
class MemberLimit:
    """How much of each cluster is run at most: API servers, and of each ring of etcd either all members or a quorum of them.

    One API server with what is beside it takes 550 MB and 8 s of processor time to start, an etcd member 50 MB and 1 s. A ring cannot be
    founded by fewer than a quorum of the members that their boot files name; the others add nothing that a program outside could see.
    """

    api_servers: int = 1
    whole_rings: bool = False


def quorum(members: int) -> int:
    """How many of a ring's members it takes: https://etcd.io/docs/v3.6/faq/#what-is-failure-tolerance"""
    return members // 2 + 1


def select_machines(
    found: Iterable[ProvisionedMachine],
    running: Iterable[ProvisionedMachine],
    rings: Mapping[str, int],
    most: MemberLimit,
    holds: Callable[[ProvisionedMachine], EtcdData],
) -> tuple[ProvisionedMachine, ...]:
    """The machines to run: those that run already stay, and members whose disks hold etcd's data come before those that never ran.

    rings is how many members each role is planned to have. API servers must be on to be chosen; a member that is off is one all the same,
    since another one would have none of its data.
    """
    machines = tuple(found)
    present = {identity(one) for one in running}

    def members(role: str) -> tuple[ProvisionedMachine, ...]:
        rows = [one for one in machines if one.role == role]
        rows.sort(key=lambda one: (identity(one) not in present, holds(one)))
        return tuple(rows[: rings[role] if most.whole_rings else quorum(rings[role])])

    servers = [one for one in machines if one.role == API_SERVER and one.on]
    servers.sort(key=lambda one: identity(one) not in present)
    return (*members(ETCD), *members(EVENTS), *servers[: most.api_servers])


def identity(machine: ProvisionedMachine) -> tuple[str, ...]:
    """What tells a machine from a later one of the same name, and from itself once a disk is new."""
    return (machine.name, machine.born, machine.os_disk, machine.local_disk)
