"""Which flags an etcd member of version 3.6 is started with, and why."""

from __future__ import annotations

from components.boot.secrets import Secrets
from components.plan.model import ETCD_CLIENT_PORT, ETCD_PEER_PORT, EtcdMemberPlan, EtcdPlan

DATA = "/var/lib/etcd"
DATA_DIRECTORY = f"{DATA}/data"
KEYS = "/etc/etcd"
CLIENT_AUTHORITIES = f"{KEYS}/client-authorities.pem"
METRICS_URL = "http://127.0.0.1:2381"
HTTP_URL = "http://127.0.0.1:2382"
"""Where a member answers what is not gRPC (its version, its health), so that the clients' port is gRPC's alone: both on one port, behind
TLS, starve a watch while a large read is sent, and cost more CPU, https://github.com/etcd-io/etcd/issues/15402. It serves no key."""
HEARTBEAT_MS = 250
"""Ten times and more the round trip between zones of a region (below 2 ms) and the pause of a large compaction."""
ELECTION_MS = 10 * HEARTBEAT_MS
"""Ten heartbeats, as https://etcd.io/docs/v3.6/tuning/ asks: a member whose disk stalls for a second starts no election."""
SNAPSHOT_COUNT = 10_000
"""Entries kept in memory between two snapshots; etcd 3.6 lowered its default to this, for each entry of a large cluster costs memory."""


def secrets_of(ring: EtcdPlan, member: EtcdMemberPlan) -> Secrets:
    """Secrets of a member: its own certificate and key, and who may talk to it.

    API servers have one client certificate for both rings, etcd's: kube-apiserver takes one pair for all its etcd servers. So the events
    ring's clients may come from either authority; its peers come from its own alone.
    """
    own = tuple(f"{ring.role}-{member.member}-{part}" for part in ("cert", "key"))
    authorities = tuple(dict.fromkeys(("etcd-ca-cert", f"{ring.role}-ca-cert")))
    return Secrets(
        vault="etcd",
        directory=KEYS,
        keep=(f"{ring.role}-ca-cert", *own),
        compose={CLIENT_AUTHORITIES: tuple(f"{{{{{name}}}}}" for name in authorities)},
        only_composed=tuple(name for name in authorities if name != f"{ring.role}-ca-cert"),
    )


def peer_url(member: EtcdMemberPlan) -> str:
    """Where the other members find a member."""
    return f"https://{member.dns_name}:{ETCD_PEER_PORT}"


def initial_cluster(ring: EtcdPlan) -> str:
    """Members that found the ring together, as etcd's environment has them; one that joins later is told others."""
    return f"ETCD_INITIAL_CLUSTER={','.join(f'{member.name}={peer_url(member)}' for member in ring.members)}"


def guard_arguments(ring: EtcdPlan, member: EtcdMemberPlan) -> str:
    """What the guard needs to ask the other members, with the member's own certificate, whether a ring runs already."""
    secrets = secrets_of(ring, member)
    authority, certificate, key = (secrets.path(name) for name in secrets.keep)
    named = {"name": member.name, "own": peer_url(member), "authority": authority, "certificate": certificate, "key": key}
    peers = (peer_url(other) for other in ring.members if other != member)
    return " \\\n  ".join((*(f"--{name}={value}" for name, value in named.items()), *peers))


def flags(ring: EtcdPlan, member: EtcdMemberPlan) -> dict[str, str | tuple[str, ...]]:
    """Flags of a member; initial-cluster and its state stand in the environment: a flag would win over what a joining member is told."""
    secrets = secrets_of(ring, member)
    authority, certificate, key = (secrets.path(name) for name in secrets.keep)
    return {
        "name": member.name,
        "data-dir": DATA_DIRECTORY,
        "listen-client-urls": f"https://{member.address}:{ETCD_CLIENT_PORT}",
        "advertise-client-urls": f"https://{member.dns_name}:{ETCD_CLIENT_PORT}",
        "listen-client-http-urls": HTTP_URL,
        "listen-peer-urls": f"https://{member.address}:{ETCD_PEER_PORT}",
        "initial-advertise-peer-urls": peer_url(member),
        "listen-metrics-urls": METRICS_URL,
        "initial-cluster-token": ring.token,
        "cert-file": certificate,
        "key-file": key,
        "trusted-ca-file": CLIENT_AUTHORITIES,
        "client-cert-auth": "true",
        "peer-cert-file": certificate,
        "peer-key-file": key,
        "peer-trusted-ca-file": authority,
        "peer-client-cert-auth": "true",
        "tls-min-version": "TLS1.3",
        "quota-backend-bytes": str(ring.quota_bytes),
        # The API servers compact: they alone know which revisions their watch caches still need.
        "auto-compaction-retention": "0",
        "snapshot-count": str(SNAPSHOT_COUNT),
        "heartbeat-interval": str(HEARTBEAT_MS),
        "election-timeout": str(ELECTION_MS),
        # A member whose data differs from the others' must not serve: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/
        "feature-gates": ("InitialCorruptCheck=true", "CompactHashCheck=true"),
        # A second way in, as JSON over HTTP, that nobody here uses.
        "enable-grpc-gateway": "false",
        "log-outputs": "stderr",
    }
