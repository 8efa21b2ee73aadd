"""Timer, unit and settings of etcd snapshots to blob storage."""

from __future__ import annotations

import json

from components.boot import etcd_flags, nvme, secrets
from components.boot.machine import BootFile
from components.boot.unit import CONFINED, timed, timer
from components.plan.model import ETCD_CLIENT_PORT, ClusterPlan, EtcdMemberPlan, EtcdPlan

UNIT = "gpufleet-etcd-snapshot.service"
TIMER = "gpufleet-etcd-snapshot.timer"
PROGRAM = "/usr/local/bin/gpufleet-etcd-snapshot"
"""Program in the machine's image: in the custom data it would use a quarter of the size that Azure allows."""
MANIFEST = "/etc/gpufleet/etcd-snapshot.json"
WORK = f"{etcd_flags.DATA}/snapshots"
"""Directory on the NVMe disk of the data; components.plan.control_plane.DISK_PER_QUOTA includes its size."""
EVERY_MINUTES = 60
"""The loss of an etcd cluster loses at most an hour of changes. The members take turns; if one fails, the interval is 80 minutes with three
members, 72 with five. A shorter interval would read a database of up to 16 GiB too often."""
SLACK_MINUTES = 5
"""Minutes before the next snapshot during which the previous snapshot no longer counts as new."""


def enabled(etcd: EtcdPlan) -> tuple[str, ...]:
    """Return the units that a member starts; none for events, which live for an hour and need no backup."""
    return (TIMER,) if etcd.role == "etcd" else ()


def minute(etcd: EtcdPlan, member: EtcdMemberPlan) -> int:
    """Return the minute of each hour at which a member takes its snapshot; the members' minutes are evenly spaced."""
    return member.member * EVERY_MINUTES // len(etcd.members)


def snapshot_files(cluster: ClusterPlan, etcd: EtcdPlan, member: EtcdMemberPlan) -> tuple[BootFile, ...]:
    """Return the program's settings, which an operator can use on all members, and for etcd also the hourly timer and its unit."""
    own = etcd_flags.secrets_of(etcd, member)
    authority, certificate, key = (own.path(name) for name in own.stored)
    manifest = {
        "container": cluster.backup_url,
        "identity": cluster.identity("etcd").id,
        "cluster": cluster.name,
        "ring": etcd.role,
        "member": member.name,
        "endpoint": f"https://{member.dns_name}:{ETCD_CLIENT_PORT}",
        "authority": authority,
        "certificate": certificate,
        "key": key,
        "directory": WORK,
    }
    service = timed(
        UNIT,
        f"Snapshot of the ring of {member.name} to blob storage",
        ("Wants=network-online.target", "After=network-online.target", *nvme.NEEDS, *secrets.NEEDS),
        (
            "Type=oneshot",
            f"ExecStart={PROGRAM} save --unless-newer-than-minutes={EVERY_MINUTES - SLACK_MINUTES}",
            f"TimeoutStartSec={EVERY_MINUTES // 2}min",
            # The member's own writes have priority.
            "Nice=19",
            "IOSchedulingClass=idle",
            *CONFINED,
            f"ReadWritePaths={etcd_flags.DATA}",
        ),
    )
    when = (f"OnCalendar=*:{minute(etcd, member):02d}:00", "AccuracySec=1s")
    hourly = timer(TIMER, f"Turn of {member.name} to save its ring", when)
    settings = BootFile(MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return (settings, *((service, hourly) if enabled(etcd) else ()))
