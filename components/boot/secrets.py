"""Which secrets a machine reads from its vault at boot, where it puts them, and what it composes of them; no value is known here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from components.boot import scripts
from components.boot.machine import BootFile
from components.boot.unit import timed, timer, unit
from components.plan.model import ClusterPlan

UNIT = "gpufleet-secrets.service"
REFRESH_UNIT = "gpufleet-secrets-refresh.service"
REFRESH_TIMER = "gpufleet-secrets-refresh.timer"
UNITS = (UNIT, REFRESH_TIMER)
"""Units that a machine with secrets starts.

An update renews certificates in the vault alone; running machines read them anew by the timer. No service is restarted for it: etcd reads
its certificate and key at each handshake, kube-apiserver and client-go's kubeconfigs reload theirs when the files change. A new service
account key, encryption configuration or etcd authority is seen by a service's next start only."""
MANIFEST = "/etc/gpufleet/secrets.json"
NEEDS = (f"Wants={UNIT}", f"After={UNIT}")
"""Unit lines of a service that reads secrets. Wants, not Requires: a service whose dependency failed once is never started again, while one
that does not find its key fails and is restarted until the key is there."""
_KINDS = {"encryption-key": "key32", "bootstrap-token": "token", "service-account-public-key": "public-key"}


@dataclass(frozen=True)
class Secrets:
    """Secrets of one machine: vault is the role of the vault they are in, directory where those in keep go, as NAME.pem.

    compose maps a path to lines in which {{NAME}} stands for a secret's value.
    """

    vault: str
    directory: str
    keep: tuple[str, ...]
    compose: dict[str, tuple[str, ...]] = field(default_factory=dict)
    only_composed: tuple[str, ...] = ()

    def path(self, name: str) -> str:
        """Where a kept secret lies; KeyError for one that is not kept."""
        if name not in self.keep:
            raise KeyError(name)
        return f"{self.directory}/{name}.pem"


def kind(name: str) -> str:
    """What a secret's value must be: certificate, private-key, public-key, key32 (32 bytes in base64) or token (a bootstrap token)."""
    return _KINDS.get(name) or ("certificate" if name.endswith("-cert") else "private-key")


def secret_files(cluster: ClusterPlan, secrets: Secrets) -> tuple[BootFile, ...]:
    """The program that fetches, what it is to fetch, and the units that run it at each boot and every six hours."""
    manifest = {
        "vault": cluster.vault(secrets.vault).uri,
        "identity": cluster.identity(secrets.vault).id,
        "directory": secrets.directory,
        "secrets": {name: kind(name) for name in secrets.keep + secrets.only_composed},
        "keep": secrets.keep,
        "compose": secrets.compose,
    }
    return (scripts.FETCH_SECRETS, BootFile(MANIFEST, json.dumps(manifest, indent=1) + "\n"), *_units())


def _units() -> tuple[BootFile, ...]:
    """The unit that fetches at boot, the one that fetches again, on which nothing depends, and its timer."""
    fetch = (f"ExecStart={scripts.FETCH_SECRETS.path}", "NoNewPrivileges=yes", "ProtectHome=yes", "PrivateTmp=yes")
    online = ("Wants=network-online.target", "After=network-online.target")
    at_boot = ("Type=oneshot", "RemainAfterExit=yes", "Restart=on-failure", "RestartSec=30", *fetch)
    # Spread over the hour before it is due again: thousands of machines that booted together share a vault.
    every = ("OnActiveSec=6h", "OnUnitActiveSec=6h", "RandomizedDelaySec=1h")
    return (
        unit(UNIT, "Secrets of this machine from Key Vault", online, at_boot),
        timed(REFRESH_UNIT, "Renewed secrets of this machine from Key Vault", (*online, f"After={UNIT}"), ("Type=oneshot", *fetch)),
        timer(REFRESH_TIMER, "Renewed secrets every six hours", every),
    )
