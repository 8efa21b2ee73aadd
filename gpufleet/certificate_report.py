"""When each certificate of a region ends, when its renewal is due, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from components.errors import GpufleetError
from components.x509 import CLOCK_SKEW, renewal_moment
from gpufleet.certificate_holders import Holder

DAY_SECONDS = 86_400


class CertificateInvalidError(GpufleetError):
    """A secret that holds no certificate; where names vault and secret."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"{where} holds no PEM certificate; pulumi refresh and then pulumi up write it anew")


@dataclass(frozen=True)
class Row:
    """One certificate: serial in hex, moments in UTC, days_left with a fraction and negative once it has ended; vaults are their names."""

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
        """The row with moments as ISO 8601."""
        moments = {name: getattr(self, name).isoformat() for name in ("begins", "ends", "due")}
        return {**vars(self), **moments, "days_left": round(self.days_left, 2)}


def report(read: Iterable[tuple[Holder, str]], now: datetime) -> list[Row]:
    """A row per certificate, what ends first before the rest; read has each holder with the secret's value (PEM). CertificateBroken.

    The same certificate in two vaults is one row; another one under the same name, as while an update writes them, is a row of its own.
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


def _row(held: list[Holder], certificate: x509.Certificate, now: datetime) -> Row:
    first, ends = held[0], certificate.not_valid_after_utc
    begins = certificate.not_valid_before_utc + CLOCK_SKEW
    due = renewal_moment(begins, ends)
    return Row(
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
    """What a person does now, or what will happen by itself."""
    if authority:
        if now > ends:
            return "ended: raise the cluster's ca_generation, then pulumi up"
        return "plan its replacement: raise the cluster's ca_generation" if now > due else f"none before {due:%Y-%m-%d}"
    if now > ends:
        return "ended: pulumi up, then restart what holds it"
    return "pulumi up renews it now" if now > due else f"pulumi up renews it from {due:%Y-%m-%d}"


def soonest(rows: Iterable[Row], days: float) -> list[Row]:
    """Rows that end in fewer days."""
    return [row for row in rows if row.days_left < days]
