"""Certificates of a cluster: purpose, vaults, the machines that hold each, its end, and what an operator has to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from components.boot import control_keys, etcd_flags, kubelet
from components.boot.secrets import Secrets
from components.errors import GpufleetError
from components.pki_certificates import AUTHORITIES
from components.plan.model import ClusterPlan, VaultPlan
from components.x509 import CLOCK_SKEW, renewal_moment

END = "-cert"
PURPOSES = {
    "cluster-ca": "authority of API servers, kubelets and their clients",
    "etcd-ca": "authority of the etcd cluster and its clients",
    "events-ca": "authority of the events cluster and its clients",
    "front-proxy-ca": "authority of the API servers as front proxies",
    "apiserver": "served by the API servers",
    "apiserver-kubelet-client": "API servers to kubelets",
    "front-proxy-client": "API servers to aggregated servers",
    "etcd-client": "API servers to both etcd clusters",
    "events-client": "people to the events cluster",
    "controller-manager": "controller manager to API server",
    "scheduler": "scheduler to API server",
    "csr-approver": "approver of kubelets' certificates to API server",
    "admin": "break-glass administrator",
}
"""Purpose of a certificate by its name, except those of the etcd members."""


@dataclass(frozen=True)
class Holder:
    """A certificate in one vault: `secret` is its name there; `machines` fetch it, as a name or a number of machines."""

    cluster: str
    name: str
    purpose: str
    vault: VaultPlan
    secret: str
    machines: tuple[str, ...]
    authority: bool


def holders(cluster: ClusterPlan) -> tuple[Holder, ...]:
    """Return every certificate of a cluster, once for each vault that has it."""
    return tuple(
        Holder(cluster.name, name, purpose(name), vault, secret, _machines(cluster, vault.role, secret), name in _authorities())
        for vault in cluster.vaults
        for secret in vault.secrets
        if (name := secret.removesuffix(END)) != secret
    )


def purpose(name: str) -> str:
    """Return the purpose of a certificate by its name; KeyError for an unknown name."""
    etcd, _, number = name.rpartition("-")
    return f"member {number} of the {etcd} cluster" if etcd in ("etcd", "events") and number.isdigit() else PURPOSES[name]


def _authorities() -> tuple[str, ...]:
    return tuple(f"{role}-ca" for role in AUTHORITIES)


def _machines(cluster: ClusterPlan, role: str, secret: str) -> tuple[str, ...]:
    """Return the machines that fetch a secret from the vault of a role: one by name, several as a number."""
    names = tuple(name for name, secrets in _fetching(cluster, role) if secret in secrets.stored + secrets.only_composed)
    return names if len(names) < 2 else (_counted(len(names), "etcd machine"),)


def _fetching(cluster: ClusterPlan, role: str) -> Iterator[tuple[str, Secrets]]:
    """Yield the machines that read the vault of a role, with their secrets."""
    if role == "etcd":
        for etcd in (cluster.etcd, cluster.events_etcd):
            for member in etcd.members:
                yield member.name, etcd_flags.secrets_of(etcd, member)
    elif role == "control":
        yield _counted(cluster.api_servers.count, "API server"), control_keys.secrets_of(cluster)
    else:
        yield _counted(cluster.nodes, "node"), kubelet.secrets_of()


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


DAY_SECONDS = 86_400


class CertificateInvalidError(GpufleetError):
    """A secret does not contain a certificate; `where` names vault and secret."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"{where} does not contain a PEM certificate; run pulumi refresh, then pulumi up")


@dataclass(frozen=True)
class CertificateRow:
    """One certificate: serial in hex, times in UTC; `days_left` has a fraction and is negative after expiry; `vaults` are names."""

    cluster: str
    name: str
    purpose: str
    machines: tuple[str, ...]
    vaults: tuple[str, ...]
    serial: str
    begins: datetime
    ends: datetime
    due: datetime
    days_left: float
    todo: str

    def as_json(self) -> dict[str, object]:
        """Return the row with times in ISO 8601."""
        moments = {name: getattr(self, name).isoformat() for name in ("begins", "ends", "due")}
        return {**vars(self), **moments, "days_left": round(self.days_left, 2)}


def report(read: Iterable[tuple[Holder, str]], now: datetime) -> list[CertificateRow]:
    """Return a row per certificate, sorted by expiry; `read` has each holder with the secret's value (PEM). CertificateInvalidError.

    The same certificate in two vaults is one row. Two certificates with one name, as during an update, are two rows.
    """
    found: dict[tuple[str, str, int], list[Holder]] = {}
    certificates: dict[tuple[str, str, int], x509.Certificate] = {}
    for holder, value in read:
        certificate = _parsed(holder, value)
        key = (holder.cluster, holder.name, certificate.serial_number)
        found.setdefault(key, []).append(holder)
        certificates[key] = certificate
    rows = [_row(held, certificates[key], now) for key, held in found.items()]
    return sorted(rows, key=lambda row: (row.ends, row.cluster, row.name))


def _parsed(holder: Holder, value: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(value.encode())
    except ValueError:
        raise CertificateInvalidError(f"{holder.vault.name}/{holder.secret}") from None


def _row(held: list[Holder], certificate: x509.Certificate, now: datetime) -> CertificateRow:
    first, ends = held[0], certificate.not_valid_after_utc
    begins = certificate.not_valid_before_utc + CLOCK_SKEW
    due = renewal_moment(begins, ends)
    return CertificateRow(
        cluster=first.cluster,
        name=first.name,
        purpose=first.purpose,
        machines=tuple(dict.fromkeys(name for holder in held for name in holder.machines)),
        vaults=tuple(dict.fromkeys(holder.vault.name for holder in held)),
        serial=f"{certificate.serial_number:x}",
        begins=begins,
        ends=ends,
        due=due,
        days_left=(ends - now).total_seconds() / DAY_SECONDS,
        todo=_todo(authority=first.authority, due=due, ends=ends, now=now),
    )


def _todo(*, authority: bool, due: datetime, ends: datetime, now: datetime) -> str:
    """Return the action for an operator, or the date of the automatic renewal."""
    if authority:
        if now > ends:
            return "ended: raise the cluster's ca_generation, then pulumi up"
        return "plan its replacement: raise the cluster's ca_generation" if now > due else f"none before {due:%Y-%m-%d}"
    if now > ends:
        return "ended: pulumi up, then restart what holds it"
    return "pulumi up renews it now" if now > due else f"pulumi up renews it from {due:%Y-%m-%d}"


def soonest(rows: Iterable[CertificateRow], days: float) -> list[CertificateRow]:
    """Return the rows that expire in fewer days."""
    return [row for row in rows if row.days_left < days]
