"""Lists everything in which a machine's programs here differ from those on a machine in Azure, besides where paths and addresses are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ADDED, ALTERED, DROPPED = "added", "altered", "dropped"


@dataclass(frozen=True)
class Override:
    """One flag of one program that is added, altered or dropped, and why."""

    program: str
    flag: str
    change: str
    why: str


FLAGS = (
    Override("kube-apiserver", "bind-address", ADDED, "whoever rehearses must not serve a cluster to the network that their machine is in"),
    Override("kube-apiserver", "secure-port", ALTERED, "several API servers share this machine's ports"),
    Override(
        "kube-apiserver",
        "advertise-address",
        ADDED,
        "the program would find this machine's address, and the kubernetes Service's endpoints must be the instances' own",
    ),
    Override("kube-controller-manager", "secure-port", ADDED, "several share this machine, and its default is one fixed port"),
    Override("kube-scheduler", "secure-port", ADDED, "several share this machine, and its default is one fixed port"),
)
"""Every flag that differs; nothing is dropped."""

CONTROLLER_MANAGER_PORT, SCHEDULER_PORT = 10_257, 10_259
"""Default secure ports: https://kubernetes.io/docs/reference/networking/ports-and-protocols/"""

NOT_RUN = {
    "gpufleet-kernel.service": "kernel settings are those of the whole machine that rehearses, and are not ours to change",
    "gpufleet-nvme.service": "there are no local NVMe devices: the folders at its mounts stand for them, and are emptied as they would be",
    "gpufleet-etcd-snapshot.timer": "an hour is longer than a rehearsal: a test starts the service that it starts",
    "gpufleet-secrets-refresh.timer": "six hours are longer than a rehearsal: a test starts the service that it starts",
}
"""Enabled units that are not run, and why."""

ENVIRONMENT = {
    "PATH": "programs of this machine, Python first: our scripts ask for python3",
    "LANG": "as on a machine",
    "GPUFLEET_IMDS": "the metadata service of the embedded Azure stands for http://169.254.169.254",
    "GPUFLEET_RESOURCE_MANAGER": "the embedded Azure stands for https://management.azure.com",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST": "Azure's library finds the metadata service by it",
    "SSL_CERT_FILE": "the embedded Azure's certificate authority, besides which nothing of the internet's is trusted",
    "REQUESTS_CA_BUNDLE": "the same, as Azure's library reads it",
    "GPUFLEET_ETCD_DATA": "the guard's paths are below the machine's folder",
    "GPUFLEET_ETCD_MARKER": "as above",
    "GPUFLEET_ETCD_JOIN": "as above",
    "GPUFLEET_ETCD_RING": "as above",
    "GPUFLEET_SNAPSHOT_MANIFEST": "as above, for gpufleet-etcd-snapshot",
    "GPUFLEET_ETCD_PAUSE": "one second instead of ten between the guard's looks: people wait for a rehearsal",
}
"""Variables that programs here have beside those of their units, and why."""

OTHER_DIFFERENCES = {
    "owner": "files belong to whoever rehearses, in a folder that is theirs alone; modes are as rendered",
    "host name": "all machines have this one's: leases tell their holders apart by what programs add to it",
    "gpufleet-fetch-secrets": "is told where its manifest lies, which on a machine is its default",
    "gpufleet-etcd-snapshot": "its manifest says that etcd's programs lie in the machine's own /usr/local/bin, as links",
}
"""What else differs."""


def local_flags(
    program: str, rendered: Mapping[str, str], address: str, ports: Mapping[str, int], altered: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Override, ...]]:
    """Flags of a program with this module's changes, and the alterations beyond FLAGS that a test asked for.

    address is the machine's in the model, ports its ports here by program; altered maps flags to a test's values.
    """
    own = {
        "kube-apiserver": {"bind-address": "127.0.0.1", "advertise-address": address},
        "etcd": {},
    }.get(program, {})
    if program in ports:
        own["secure-port"] = str(ports[program])
    asked = tuple(Override(program, flag, ALTERED if flag in rendered else ADDED, "a test asked for it") for flag in altered)
    return {**rendered, **own, **altered}, asked
