"""What the machine of an etcd member is told at boot."""

from __future__ import annotations

from components.boot import etcd_flags, etcd_snapshot, nvme, scripts, secrets, system
from components.boot.machine import BootFile, MachineBoot
from components.boot.unit import CONFINED, exec_start, unit
from components.plan.model import ClusterPlan, EtcdMemberPlan, EtcdPlan

UNIT = "etcd.service"
PROGRAM = "/usr/local/bin/etcd"
JOIN_ENVIRONMENT = "/run/gpufleet/etcd-join.env"
"""Where ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER let a member join a ring that runs, on an empty disk.

It is gone with the next boot, which may empty the disk again."""


def _service(ring: EtcdPlan, member: EtcdMemberPlan) -> BootFile:
    """The member's unit: it starts only where the guard says so, and counts as started once it is part of a quorum."""
    return unit(
        UNIT,
        f"etcd member {member.name}",
        ("Wants=network-online.target", "After=network-online.target", *nvme.NEEDS, *secrets.NEEDS, "StartLimitIntervalSec=0"),
        (
            "Type=notify",
            f"Environment={etcd_flags.initial_cluster(ring)}",
            f"EnvironmentFile=-{JOIN_ENVIRONMENT}",
            f"ExecStartPre=+{scripts.ETCD_GUARD.path} may-start {etcd_flags.guard_arguments(ring, member)}",
            exec_start(PROGRAM, etcd_flags.flags(ring, member)),
            f"ExecStartPost=+{scripts.ETCD_GUARD.path} started",
            # The first members wait for a quorum, and a wiped one for its replacement.
            "TimeoutStartSec=infinity",
            "Restart=always",
            "RestartSec=5",
            "LimitNOFILE=65536",
            # Everything else on the machine may die or wait for the disk before etcd does.
            "OOMScoreAdjust=-999",
            "IOSchedulingClass=best-effort",
            "IOSchedulingPriority=0",
            "CPUWeight=1000",
            *CONFINED,
            f"ReadWritePaths={etcd_flags.DATA}",
        ),
    )


def boot_etcd(cluster: ClusterPlan, ring: EtcdPlan, member: EtcdMemberPlan) -> MachineBoot:
    """Files and units of one etcd member, whose data lies on all local NVMe devices; pure."""
    files = (
        *system.kernel_files(node=False),
        *system.steady_files(),
        *nvme.nvme_files(ring.size.local_nvme_disks, etcd_flags.DATA, binds=(), fresh_unless=None, before=(UNIT,)),
        *secrets.secret_files(cluster, etcd_flags.secrets_of(ring, member)),
        scripts.ETCD_GUARD,
        scripts.ETCD_RING,
        _service(ring, member),
        *etcd_snapshot.snapshot_files(cluster, ring, member),
    )
    enable = (system.KERNEL_UNIT, nvme.UNIT, *secrets.UNITS, UNIT, *etcd_snapshot.enabled(ring))
    return MachineBoot(role=ring.role, files=files, enable=enable)
