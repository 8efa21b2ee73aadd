"""Overrides: all differences of local programs from those on a machine in Azure, besides mapped paths and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ADDED, CHANGED, DROPPED = "added", "changed", "dropped"


@dataclass(frozen=True)
class Override:
    """One flag of one program that is added, changed or dropped, and the reason."""

    program: str
    flag: str
    change: str
    why: str


FLAGS = (
    Override("kube-apiserver", "bind-address", ADDED, "a rehearsal must not expose its API server to the machine's network"),
    Override("kube-apiserver", "secure-port", CHANGED, "several API servers share the ports of this machine"),
    Override(
        "kube-apiserver",
        "advertise-address",
        ADDED,
        "the program would find this machine's address, but the endpoints of the kubernetes Service must be the instances' addresses",
    ),
    Override("kube-controller-manager", "secure-port", ADDED, "several instances share this machine, and the default is a fixed port"),
    Override("kube-scheduler", "secure-port", ADDED, "several instances share this machine, and the default is a fixed port"),
)
"""Every flag that differs; none is dropped."""

CONTROLLER_MANAGER_PORT, SCHEDULER_PORT = 10_257, 10_259
"""Default secure ports: https://kubernetes.io/docs/reference/networking/ports-and-protocols/"""

NOT_RUN = {
    "gpufleet-kernel.service": "kernel settings belong to the whole machine, and a rehearsal must not change them",
    "gpufleet-nvme.service": "there are no local NVMe devices: folders at the mounts replace them, and are emptied in the same cases",
    "gpufleet-etcd-snapshot.timer": "an hour is longer than a rehearsal: a test starts its service",
    "gpufleet-secrets-refresh.timer": "six hours are longer than a rehearsal: a test starts its service",
}
"""Enabled units that are not run, and the reason."""

ENVIRONMENT = {
    "PATH": "programs of this machine, Python first: scripts of the machines start python3",
    "LANG": "as on a machine",
    "GPUFLEET_IMDS": "the metadata service of the embedded Azure replaces http://169.254.169.254",
    "GPUFLEET_RESOURCE_MANAGER": "the embedded Azure replaces https://management.azure.com",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST": "Azure's library finds the metadata service by this variable",
    "SSL_CERT_FILE": "the embedded Azure's certificate authority; no other authority is trusted",
    "REQUESTS_CA_BUNDLE": "the same, as Azure's library reads it",
    "GPUFLEET_ATTESTATION_ROOTS": "the embedded Azure signs attested data with its own chain",
    "GPUFLEET_ETCD_DATA": "the etcd guard's paths are below the machine's folder",
    "GPUFLEET_ETCD_MARKER": "as above",
    "GPUFLEET_ETCD_JOIN": "as above",
    "GPUFLEET_ETCD_RING": "as above",
    "GPUFLEET_SNAPSHOT_MANIFEST": "as above, for gpufleet-etcd-snapshot",
    "GPUFLEET_ETCD_PAUSE": "one second instead of ten between the guard's checks, to shorten a rehearsal",
}
"""Environment variables that local programs have beside those of their units, and the reason."""

OTHER_DIFFERENCES = {
    "owner": "files belong to the user, in a private folder; modes are as rendered",
    "host name": "all machines have the host name of this machine; holders of leases differ by a suffix that programs add",
    "gpufleet-fetch-secrets": "gets the path of its manifest as an argument; on a machine the path is the default",
    "gpufleet-etcd-snapshot": "its manifest contains the path of etcd's programs, which are links in the machine's /usr/local/bin",
}
"""Other differences."""


def local_flags(
    program: str, rendered: Mapping[str, str], address: str, ports: Mapping[str, int], requested: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Override, ...]]:
    """Return the flags of a program with this module's overrides, and the overrides that a test requested.

    address is the machine's address in the model, ports are its local ports by program, and requested maps flags to a test's values.
    """
    own = {
        "kube-apiserver": {"bind-address": "127.0.0.1", "advertise-address": address},
        "etcd": {},
    }.get(program, {})
    if program in ports:
        own["secure-port"] = str(ports[program])
    additional = tuple(Override(program, flag, CHANGED if flag in rendered else ADDED, "a test requested it") for flag in requested)
    return {**rendered, **own, **requested}, additional
