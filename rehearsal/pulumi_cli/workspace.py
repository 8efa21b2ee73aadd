"""Decides what the CLI works with for one region: a home, a state, a project and a passphrase of its own, all in one folder."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from rehearsal.local_up.up import PROJECT
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
from stacks.load import ROOT, region_names, region_path

PROVIDERS: Mapping[str, tuple[str, str]] = {
    "azure-native": ("pulumi-azure-native", "rehearsal.pulumi_cli.providers.azure_native"),
    "kubernetes": ("pulumi-kubernetes", "rehearsal.pulumi_cli.providers.kubernetes"),
}
"""By Pulumi's name: the SDK whose version the engine asks for, and the module that serves it."""


def plugin_versions() -> dict[str, str]:
    """The version of each provider that a program of this environment asks for."""
    return {name: importlib.metadata.version(sdk) for name, (sdk, _) in PROVIDERS.items()}


def install_plugins(home: Path) -> None:
    """Write the plugins into a PULUMI_HOME, laid out as `pulumi plugin install` does it; what stands there already is written again.

    The plugin of a name and version is looked for in plugins/resource-NAME-vVERSION/pulumi-resource-NAME:
    https://github.com/pulumi/pulumi/blob/008a315303507297fd13aea17efd6516379cd4ec/sdk/go/common/workspace/plugins.go
    """
    for name, version in plugin_versions().items():
        path = plugin_executable(home, name, version)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(_plugin_script(PROVIDERS[name][1]))
        beside.chmod(0o755)
        # At once: a command that runs beside this one must never meet half a file.
        beside.replace(path)


def plugin_executable(home: Path, name: str, version: str) -> Path:
    """Where the executable of a plugin stands."""
    return home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _plugin_script(module: str) -> str:
    """A program that becomes the provider, run by this very Python."""
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n'


FOREIGN_VARIABLES = ("PULUMI_", "ARM_", "AZURE_", "KUBE")
"""Beginnings of the variables that never reach the CLI from a person's shell: no rehearsal meets a real cloud, state or cluster."""
COPIED_SETTINGS = ("config",)
"""Keys of a stack's settings that a rehearsal takes over. The others name the key of the real stack's state."""


class WorkspaceError(GpufleetError):
    """A folder that cannot be worked in: why, and what to do."""


@dataclass(frozen=True)
class EngineFolder:
    """The folder of one region, out/REGION/engine unless a person names another.

    home is PULUMI_HOME, backend the state, project what the CLI runs in, inside what the hub's network keeps.
    """

    path: Path

    @property
    def home(self) -> Path:
        """PULUMI_HOME."""
        return self.path / "home"

    @property
    def backend(self) -> Path:
        """Pulumi's state, as its file backend keeps it."""
        return self.path / "state"

    @property
    def project(self) -> Path:
        """Folder of Pulumi.yaml."""
        return self.path / "project"

    @property
    def inside(self) -> Path:
        """The embedded Azure, and what its control planes keep."""
        return self.path / "inside"

    @property
    def passphrase(self) -> Path:
        """File of the passphrase that the state's secrets are encrypted with."""
        return self.path / "passphrase"

    @property
    def exists(self) -> bool:
        """Whether a command has worked in it before."""
        return self.passphrase.exists()

    @contextmanager
    def held(self) -> Iterator[int]:
        """Keep every other command out; FolderRefused where one is at work.

        What inherits the file descriptor goes on holding the folder when this process is killed, so that a CLI that outlives it is met as
        a command at work.
        """
        if any(self.path.glob("state-*.json")):
            raise WorkspaceError(f"{self.path} holds an Azure that was brought up in process; give another directory with --state")
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise WorkspaceError(
                f"{self.path} is in use by another command; wait for its end, or give another directory with --state"
            ) from None
        try:
            yield lock
        finally:
            # For all who inherited it, too: providers may take a moment to end.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def prepare(self, plan: RegionPlan, region: str) -> None:
        """Make what is missing, and bring up to date what follows the repository; nothing is written outside the folder."""
        for folder in (self.home, self.backend, self.project):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The CLI writes a log of every command, of a large region over 100 MB: those of the latest are enough.
        shutil.rmtree(self.home / "logs", ignore_errors=True)
        self._make_passphrase()
        install_plugins(self.home)
        _write_yaml(self.project / "Pulumi.yaml", _project_settings())
        for stack in (plan.base_stack, plan.stack):
            path = self.project / f"Pulumi.{stack}.yaml"
            kept = {key: value for key, value in _read_yaml(path).items() if key not in COPIED_SETTINGS}
            _write_yaml(path, {**kept, "config": {**_stack_config(stack), **_region_file_setting(plan, region)}})

    def environment(self, programs: PulumiPrograms, more: Mapping[str, str]) -> dict[str, str]:
        """What the CLI and all that it starts have in their environment; more is what leads to the embedded Azure."""
        person = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN_VARIABLES)}
        return {
            **person,
            "PATH": os.pathsep.join([*map(str, programs.path), os.environ.get("PATH", "")]),
            "PULUMI_HOME": str(self.home.resolve()),
            "PULUMI_BACKEND_URL": f"file://{self.backend.resolve()}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.passphrase.resolve()),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # Our plugins or none: neither one that is on PATH, nor one from the network.
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # --event-log is one of the commands for debugging.
            "PULUMI_DEBUG_COMMANDS": "true",
            # A run changes neither the virtual environment nor uv.lock.
            "UV_FROZEN": "1",
            "UV_OFFLINE": "1",
            **more,
        }

    def _make_passphrase(self) -> None:
        if not self.passphrase.exists():
            beside = self.passphrase.with_suffix(".new")
            beside.unlink(missing_ok=True)
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32))
            beside.replace(self.passphrase)


def _project_settings() -> dict[str, Any]:
    """The repository's Pulumi.yaml, with the program's folder and this very environment by paths that hold from anywhere."""
    found = _read_yaml(ROOT / "Pulumi.yaml")
    runtime = found["runtime"]
    options = {**runtime["options"], "virtualenv": sys.prefix}
    rest = {key: value for key, value in found.items() if key != "stackConfigDir"}
    return {**rest, "runtime": {**runtime, "options": options}, "main": str(ROOT / found["main"])}


def _stack_config(stack: str) -> dict[str, Any]:
    """What a rehearsal takes over of a stack's settings; of a region without any, what those of every other say."""
    path = ROOT / "stacks" / f"Pulumi.{stack}.yaml"
    found = _read_yaml(path if path.exists() else ROOT / "stacks" / "Pulumi.dev.yaml")
    return {key: value for key, value in found.get("config", {}).items() if not (isinstance(value, dict) and "secure" in value)}


def _region_file_setting(plan: RegionPlan, region: str) -> dict[str, str]:
    """Where the program finds a region file that is not under stacks/regions."""
    path = region_path(region).resolve()
    known = plan.name in region_names() and path == region_path(plan.name).resolve()
    return {} if known else {f"{PROJECT}:region-file": str(path)}


def _read_yaml(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text()) or {} if path.exists() else {}


def _write_yaml(path: Path, document: Mapping[str, Any]) -> None:
    text = yaml.safe_dump(dict(document), sort_keys=False)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
