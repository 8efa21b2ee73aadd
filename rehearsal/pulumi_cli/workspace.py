"""Folder in which the CLI works on one region: its own home with plugins, state, project and passphrase."""

from __future__ import annotations

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
from rehearsal.azure.directory_lock import DirectoryLock
from rehearsal.azure.directory_marker import ENGINE, claim, mark
from rehearsal.local_up.up import PROJECT
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
from stacks.atomic_write import write_atomically
from stacks.load import ROOT, region_names, region_path

PROVIDERS: Mapping[str, tuple[str, str]] = {
    "azure-native": ("pulumi-azure-native", "rehearsal.pulumi_cli.providers.azure_native"),
    "kubernetes": ("pulumi-kubernetes", "rehearsal.pulumi_cli.providers.kubernetes"),
}
"""By Pulumi's name: the SDK whose version the engine requires, and the module that serves it."""


def plugin_versions() -> dict[str, str]:
    """Return the version of each provider that a program of this environment requires."""
    return {name: importlib.metadata.version(sdk) for name, (sdk, _) in PROVIDERS.items()}


def install_plugins(home: Path) -> None:
    """Write the plugins into a PULUMI_HOME, in the layout of `pulumi plugin install`; existing ones are replaced.

    The engine searches for a plugin of a name and version in plugins/resource-NAME-vVERSION/pulumi-resource-NAME:
    https://github.com/pulumi/pulumi/blob/008a315303507297fd13aea17efd6516379cd4ec/sdk/go/common/workspace/plugins.go
    """
    for name, version in plugin_versions().items():
        path = plugin_executable(home, name, version)
        path.parent.mkdir(parents=True, exist_ok=True)
        # A concurrent command must never read half a file.
        write_atomically(path, _plugin_script(PROVIDERS[name][1]), mode=0o755)


def plugin_executable(home: Path, name: str, version: str) -> Path:
    """Return the path of a plugin's executable."""
    return home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _plugin_script(module: str) -> str:
    """Return a script that runs a provider with this Python interpreter."""
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n'


FOREIGN_VARIABLES = ("PULUMI_", "ARM_", "AZURE_", "KUBE")
"""Prefixes of variables that the CLI never inherits from the user's shell: a rehearsal uses no real cloud, state or cluster."""
PROGRAM = Path(__file__).parent.resolve() / "program"
"""Folder of the program that the CLI runs. No variable or setting chooses it, so that a real deployment cannot run it by mistake."""
COPIED_SETTINGS = ("config",)
"""Keys of a stack's settings that a rehearsal copies. The others concern the encryption key of the real stack's state."""


class WorkspaceError(GpufleetError):
    """A folder that cannot be used: reason and remedy."""


@dataclass(frozen=True)
class EngineFolder:
    """The folder of one region: out/REGION/engine, or the one given with --state.

    home is PULUMI_HOME, backend the state, project the CLI's working directory, hub_data the data of the hub namespace.
    """

    path: Path

    @property
    def home(self) -> Path:
        """PULUMI_HOME."""
        return self.path / "home"

    @property
    def backend(self) -> Path:
        """Return Pulumi's state in its file backend."""
        return self.path / "state"

    @property
    def project(self) -> Path:
        """Return the folder of Pulumi.yaml."""
        return self.path / "project"

    @property
    def hub_data(self) -> Path:
        """Return the data of the embedded Azure and of its control planes."""
        return self.path / "inside"

    @property
    def passphrase(self) -> Path:
        """Return the file with the passphrase that encrypts the state's secrets."""
        return self.path / "passphrase"

    @property
    def exists(self) -> bool:
        """Return whether a command has used the folder before."""
        return self.passphrase.exists()

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Lock the folder against other commands; DirectoryInUseError where one uses it, ForeignDirectoryError where it has other files.

        The lock ends when all processes that inherited its file descriptor have ended. A CLI that survives this process therefore counts as
        a command that uses the folder.
        """
        if any(self.path.glob("state-*.json")):
            raise WorkspaceError(f"{self.path} contains the Azure of a local up; give another directory with --state")
        claim(self.path, ENGINE)
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = DirectoryLock(self.path)
        try:
            mark(self.path, ENGINE)
            yield lock.descriptor
        finally:
            # This unlocks it in child processes, too: providers may take a moment to end.
            lock.release()

    def prepare(self, plan: RegionPlan, region: str) -> None:
        """Create missing files and update those that follow the repository; nothing outside the folder is written."""
        for folder in (self.home, self.backend, self.project):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The CLI logs every command, for a large region over 100 MB: the latest logs are enough.
        shutil.rmtree(self.home / "logs", ignore_errors=True)
        self._make_passphrase()
        install_plugins(self.home)
        _write_yaml(self.project / "Pulumi.yaml", _project_settings())
        for stack in (plan.base_stack, plan.stack):
            path = self.project / f"Pulumi.{stack}.yaml"
            unchanged = {key: value for key, value in _read_yaml(path).items() if key not in COPIED_SETTINGS}
            _write_yaml(path, {**unchanged, "config": {**_stack_config(stack), **_region_file_setting(plan, region)}})

    def environment(self, programs: PulumiPrograms, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the CLI and its child processes; more contains the variables for the embedded Azure."""
        person = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN_VARIABLES)}
        return {
            **person,
            "PATH": os.pathsep.join([*map(str, programs.path), os.environ.get("PATH", "")]),
            "PULUMI_HOME": str(self.home.resolve()),
            "PULUMI_BACKEND_URL": f"file://{self.backend.resolve()}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.passphrase.resolve()),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # Only the plugins of this home: none from PATH or from the network.
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # --event-log is a debugging option.
            "PULUMI_DEBUG_COMMANDS": "true",
            # A run changes neither the virtual environment nor uv.lock.
            "UV_FROZEN": "1",
            "UV_OFFLINE": "1",
            **more,
        }

    def _make_passphrase(self) -> None:
        if not self.passphrase.exists():
            write_atomically(self.passphrase, secrets.token_urlsafe(32), mode=0o600)


def _project_settings() -> dict[str, Any]:
    """Return the repository's Pulumi.yaml, with the rehearsal's program and absolute paths of its folder and of this environment."""
    found = _read_yaml(ROOT / "Pulumi.yaml")
    runtime = found["runtime"]
    options = {**runtime["options"], "virtualenv": sys.prefix}
    rest = {key: value for key, value in found.items() if key != "stackConfigDir"}
    return {**rest, "runtime": {**runtime, "options": options}, "main": str(PROGRAM)}


def _stack_config(stack: str) -> dict[str, Any]:
    """Return the settings of a stack that a rehearsal copies; a region without settings uses those of dev."""
    path = ROOT / "stacks" / f"Pulumi.{stack}.yaml"
    found = _read_yaml(path if path.exists() else ROOT / "stacks" / "Pulumi.dev.yaml")
    return {key: value for key, value in found.get("config", {}).items() if not (isinstance(value, dict) and "secure" in value)}


def _region_file_setting(plan: RegionPlan, region: str) -> dict[str, str]:
    """Return the setting for a region file that is not in stacks/regions."""
    path = region_path(region).resolve()
    known = plan.name in region_names() and path == region_path(plan.name).resolve()
    return {} if known else {f"{PROJECT}:region-file": str(path)}


def _read_yaml(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text()) or {} if path.exists() else {}


def _write_yaml(path: Path, document: Mapping[str, Any]) -> None:
    text = yaml.safe_dump(dict(document), sort_keys=False)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
