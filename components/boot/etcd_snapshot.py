"""When an etcd member saves its ring to blob storage, and what the program that does it is told."""

from __future__ import annotations

import json

from components.boot import etcd_flags, nvme, secrets
from components.boot.machine import BootFile
from components.boot.unit import CONFINED, timed, timer
from components.plan.model import ETCD_CLIENT_PORT, ClusterPlan, EtcdMemberPlan, EtcdPlan

UNIT = "gpufleet-etcd-snapshot.service"
TIMER = "gpufleet-etcd-snapshot.timer"
PROGRAM = "/usr/local/bin/gpufleet-etcd-snapshot"
"""In the image: it and what it knows of storage would fill a quarter of the custom data that Azure takes."""
MANIFEST = "/etc/gpufleet/etcd-snapshot.json"
WORK = f"{etcd_flags.DATA}/snapshots"
"""On the NVMe beside the data, whose size counts it: components.plan.control_plane.DISK_PER_QUOTA."""
EVERY_MINUTES = 60
"""A ring that is lost costs an hour of changes at most. The members take turns: where the one whose turn it is has failed, the next one's
turn makes it 80 minutes in a ring of three, 72 in one of five. More often would read a database of up to 16 GiB for little."""
SLACK_MINUTES = 5
"""A snapshot that was begun on time counts as new until so long before the next is due."""


def enabled(ring: EtcdPlan) -> tuple[str, ...]:
    """Units that a member of a ring starts; none for events, which live an hour and are worth no copy of their own."""
    return (TIMER,) if ring.role == "etcd" else ()


def minute(ring: EtcdPlan, member: EtcdMemberPlan) -> int:
    """Minute of every hour at which a member's turn is; turns of a ring lie as far apart as they can."""
    return member.member * EVERY_MINUTES // len(ring.members)


def snapshot_files(cluster: ClusterPlan, ring: EtcdPlan, member: EtcdMemberPlan) -> tuple[BootFile, ...]:
    """What the program is told, on members of every ring, for a person; its unit and timer where the ring is saved each hour."""
    own = etcd_flags.secrets_of(ring, member)
    authority, certificate, key = (own.path(name) for name in own.keep)
    manifest = {
        "container": cluster.backup_url,
        "identity": cluster.identity("etcd").id,
        "cluster": cluster.name,
        "ring": ring.role,
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
            # The member's own writes come first.
            "Nice=19",
            "IOSchedulingClass=idle",
            *CONFINED,
            f"ReadWritePaths={etcd_flags.DATA}",
        ),
    )
    when = (f"OnCalendar=*:{minute(ring, member):02d}:00", "AccuracySec=1s")
    clock = timer(TIMER, f"Turn of {member.name} to save its ring", when)
    told = BootFile(MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return (told, *((service, clock) if enabled(ring) else ()))
