"""Flags of etcd 3.6 and the reason for each."""

from __future__ import annotations

from components.boot.secrets import Secrets
from components.plan.model import ETCD_CLIENT_PORT, ETCD_PEER_PORT, EtcdMemberPlan, EtcdPlan

DATA = "/var/lib/etcd"
DATA_DIRECTORY = f"{DATA}/data"
KEYS = "/etc/etcd"
CLIENT_AUTHORITIES = f"{KEYS}/client-authorities.pem"
METRICS_URL = "http://127.0.0.1:2381"
HTTP_URL = "http://127.0.0.1:2382"
"""URL of requests other than gRPC (version, health), so that the client port serves gRPC only. Both on one TLS port starve watches during
large reads and need more CPU: https://github.com/etcd-io/etcd/issues/15402. This URL serves no keys."""
HEARTBEAT_MS = 250
"""More than ten times the round trip between zones of a region (below 2 ms) and the pause of a large compaction."""
ELECTION_MS = 10 * HEARTBEAT_MS
"""Ten heartbeats, as https://etcd.io/docs/v3.6/tuning/ recommends: a member whose disk stalls for a second starts no election."""
SNAPSHOT_COUNT = 10_000
"""Entries in memory between two snapshots; etcd 3.6 lowered its default to this number, because entries of a large cluster need memory."""


def secrets_of(etcd: EtcdPlan, member: EtcdMemberPlan) -> Secrets:
    """Return the secrets of a member: its certificate and key, and the authorities of its clients and peers.

    kube-apiserver accepts one client certificate for all etcd servers, so API servers use etcd's for both clusters. Therefore the events
    cluster accepts clients of both authorities, but peers of its own authority only.
    """
    own = tuple(f"{etcd.role}-{member.member}-{part}" for part in ("cert", "key"))
    authorities = tuple(dict.fromkeys(("etcd-ca-cert", f"{etcd.role}-ca-cert")))
    return Secrets(
        vault="etcd",
        directory=KEYS,
        stored=(f"{etcd.role}-ca-cert", *own),
        compose={CLIENT_AUTHORITIES: tuple(f"{{{{{name}}}}}" for name in authorities)},
        only_composed=tuple(name for name in authorities if name != f"{etcd.role}-ca-cert"),
    )


def peer_url(member: EtcdMemberPlan) -> str:
    """Return the URL of a member for the other members."""
    return f"https://{member.dns_name}:{ETCD_PEER_PORT}"


def initial_cluster(etcd: EtcdPlan) -> str:
    """Return the initial members as an environment variable of etcd; a member that joins later gets another value."""
    return f"ETCD_INITIAL_CLUSTER={','.join(f'{member.name}={peer_url(member)}' for member in etcd.members)}"


def guard_arguments(etcd: EtcdPlan, member: EtcdMemberPlan) -> str:
    """Return the guard's arguments, with which it checks at the other members whether the etcd cluster is already running."""
    secrets = secrets_of(etcd, member)
    authority, certificate, key = (secrets.path(name) for name in secrets.stored)
    named = {"name": member.name, "own": peer_url(member), "authority": authority, "certificate": certificate, "key": key}
    peers = (peer_url(other) for other in etcd.members if other != member)
    return " \\\n  ".join((*(f"--{name}={value}" for name, value in named.items()), *peers))


def flags(etcd: EtcdPlan, member: EtcdMemberPlan) -> dict[str, str | tuple[str, ...]]:
    """Return the flags of a member, without initial-cluster and its state: a flag would override the environment of a joining member."""
    secrets = secrets_of(etcd, member)
    authority, certificate, key = (secrets.path(name) for name in secrets.stored)
    return {
        "name": member.name,
        "data-dir": DATA_DIRECTORY,
        "listen-client-urls": f"https://{member.address}:{ETCD_CLIENT_PORT}",
        "advertise-client-urls": f"https://{member.dns_name}:{ETCD_CLIENT_PORT}",
        "listen-client-http-urls": HTTP_URL,
        "listen-peer-urls": f"https://{member.address}:{ETCD_PEER_PORT}",
        "initial-advertise-peer-urls": peer_url(member),
        "listen-metrics-urls": METRICS_URL,
        "initial-cluster-token": etcd.token,
        "cert-file": certificate,
        "key-file": key,
        "trusted-ca-file": CLIENT_AUTHORITIES,
        "client-cert-auth": "true",
        "peer-cert-file": certificate,
        "peer-key-file": key,
        "peer-trusted-ca-file": authority,
        "peer-client-cert-auth": "true",
        "tls-min-version": "TLS1.3",
        "quota-backend-bytes": str(etcd.quota_bytes),
        # The API servers compact: only they can determine which revisions their watch caches still need.
        "auto-compaction-retention": "0",
        "snapshot-count": str(SNAPSHOT_COUNT),
        "heartbeat-interval": str(HEARTBEAT_MS),
        "election-timeout": str(ELECTION_MS),
        # A member whose data differs from the others' must not serve: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/
        "feature-gates": ("InitialCorruptCheck=true", "CompactHashCheck=true"),
        # JSON over HTTP is not used.
        "enable-grpc-gateway": "false",
        "log-outputs": "stderr",
    }
