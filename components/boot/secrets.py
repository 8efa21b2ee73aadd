"""Secrets that a machine reads from its vault at boot, their paths, and files composed of them; without values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from components.boot import scripts
from components.boot.machine import BootFile
from components.boot.unit import timed, timer, unit
from components.plan.access import BOOTSTRAP_TOKEN
from components.plan.model import ClusterPlan

UNIT = "gpufleet-secrets.service"
REFRESH_UNIT = "gpufleet-secrets-refresh.service"
REFRESH_TIMER = "gpufleet-secrets-refresh.timer"
UNITS = (UNIT, REFRESH_TIMER)
"""Units that a machine with secrets starts.

An update renews certificates in the vault only; running machines fetch them by the timer. No service is restarted: etcd reads its
certificate and key at each handshake; kube-apiserver and client-go reload changed files. A new service account key, encryption
configuration or etcd authority takes effect at the next start of a service."""
MANIFEST = "/etc/gpufleet/secrets.json"
NEEDS = (f"Wants={UNIT}", f"After={UNIT}")
"""Unit lines of a service that reads secrets. Wants, not Requires: systemd does not retry a service whose dependency failed, but it
restarts a service that fails without its key until the key exists."""
_KINDS = {"encryption-key": "key32", BOOTSTRAP_TOKEN: "token", "service-account-public-key": "public-key"}


@dataclass(frozen=True)
class Secrets:
    """Secrets of one machine: vault is the role of their vault; secrets in stored are written to directory as NAME.pem.

    compose maps a path to lines in which {{NAME}} stands for a secret's value.
    """

    vault: str
    directory: str
    stored: tuple[str, ...]
    compose: dict[str, tuple[str, ...]] = field(default_factory=dict)
    only_composed: tuple[str, ...] = ()

    def path(self, name: str) -> str:
        """Return the path of a stored secret; raise KeyError for a secret that is not in stored."""
        if name not in self.stored:
            raise KeyError(name)
        return f"{self.directory}/{name}.pem"


def kind(name: str) -> str:
    """Return the form of a secret's value: certificate, private-key, public-key, key32 (32 bytes in base64) or token (bootstrap token)."""
    return _KINDS.get(name) or ("certificate" if name.endswith("-cert") else "private-key")


def secret_files(cluster: ClusterPlan, secrets: Secrets) -> tuple[BootFile, ...]:
    """Return the program that fetches secrets, its settings, and its units for each boot and every six hours."""
    manifest = {
        "vault": cluster.vault(secrets.vault).uri,
        "identity": cluster.identity(secrets.vault).id,
        "directory": secrets.directory,
        "secrets": {name: kind(name) for name in secrets.stored + secrets.only_composed},
        "keep": secrets.stored,
        "compose": secrets.compose,
    }
    return (scripts.FETCH_SECRETS, BootFile(MANIFEST, json.dumps(manifest, indent=1) + "\n"), *_units())


def _units() -> tuple[BootFile, ...]:
    """Return the unit that fetches at boot, the unit that refreshes (no unit depends on it), and its timer."""
    fetch = (f"ExecStart={scripts.FETCH_SECRETS.path}", "NoNewPrivileges=yes", "ProtectHome=yes", "PrivateTmp=yes")
    online = ("Wants=network-online.target", "After=network-online.target")
    at_boot = ("Type=oneshot", "RemainAfterExit=yes", "Restart=on-failure", "RestartSec=30", *fetch)
    # A random delay of up to an hour, since thousands of machines that booted together share a vault.
    every = ("OnActiveSec=6h", "OnUnitActiveSec=6h", "RandomizedDelaySec=1h")
    return (
        unit(UNIT, "Secrets of this machine from Key Vault", online, at_boot),
        timed(REFRESH_UNIT, "Renewed secrets of this machine from Key Vault", (*online, f"After={UNIT}"), ("Type=oneshot", *fetch)),
        timer(REFRESH_TIMER, "Renewed secrets every six hours", every),
    )
