"""Boot files of an etcd member's machine."""

from __future__ import annotations

from components.boot import etcd_flags, etcd_snapshot, nvme, scripts, secrets, system
from components.boot.machine import BootFile, MachineBoot
from components.boot.unit import CONFINED, exec_start, unit
from components.plan.model import ClusterPlan, EtcdMemberPlan, EtcdPlan

UNIT = "etcd.service"
PROGRAM = "/usr/local/bin/etcd"
JOIN_ENVIRONMENT = "/run/gpufleet/etcd-join.env"
"""File with ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER, with which a member with an empty disk joins a running cluster.

The next boot, which may empty the disk again, removes it."""


def _service(etcd: EtcdPlan, member: EtcdMemberPlan) -> BootFile:
    """Return the member's unit: it starts only if the guard allows it, and is started when the member is part of a quorum."""
    return unit(
        UNIT,
        f"etcd member {member.name}",
        ("Wants=network-online.target", "After=network-online.target", *nvme.NEEDS, *secrets.NEEDS, "StartLimitIntervalSec=0"),
        (
            "Type=notify",
            f"Environment={etcd_flags.initial_cluster(etcd)}",
            f"EnvironmentFile=-{JOIN_ENVIRONMENT}",
            f"ExecStartPre=+{scripts.ETCD_GUARD.path} may-start {etcd_flags.guard_arguments(etcd, member)}",
            exec_start(PROGRAM, etcd_flags.flags(etcd, member)),
            f"ExecStartPost=+{scripts.ETCD_GUARD.path} started",
            # The first members wait for a quorum, and a member with an erased disk for its replacement.
            "TimeoutStartSec=infinity",
            "Restart=always",
            "RestartSec=5",
            "LimitNOFILE=65536",
            # Any other process on the machine is killed, or waits for the disk, before etcd.
            "OOMScoreAdjust=-999",
            "IOSchedulingClass=best-effort",
            "IOSchedulingPriority=0",
            "CPUWeight=1000",
            *CONFINED,
            f"ReadWritePaths={etcd_flags.DATA}",
        ),
    )


def boot_etcd(cluster: ClusterPlan, etcd: EtcdPlan, member: EtcdMemberPlan) -> MachineBoot:
    """Return the files and units of an etcd member, whose data is on all local NVMe devices."""
    files = (
        *system.kernel_files(node=False),
        *system.steady_files(),
        *nvme.nvme_files(etcd.size.local_nvme_disks, etcd_flags.DATA, binds=(), fresh_unless=None, before=(UNIT,)),
        *secrets.secret_files(cluster, etcd_flags.secrets_of(etcd, member)),
        scripts.ETCD_GUARD,
        scripts.ETCD_RING,
        _service(etcd, member),
        *etcd_snapshot.snapshot_files(cluster, etcd, member),
    )
    enable = (system.KERNEL_UNIT, nvme.UNIT, *secrets.UNITS, UNIT, *etcd_snapshot.enabled(etcd))
    return MachineBoot(role=etcd.role, files=files, enable=enable)
