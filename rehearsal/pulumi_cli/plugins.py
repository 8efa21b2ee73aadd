"""Decides where the CLI finds the providers of the embedded Azure: as plugins of the pinned versions, in a home of its own."""

from __future__ import annotations

import importlib.metadata
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

PROVIDERS: Mapping[str, tuple[str, str]] = {
    "azure-native": ("pulumi-azure-native", "rehearsal.pulumi_cli.providers.azure_native"),
    "kubernetes": ("pulumi-kubernetes", "rehearsal.pulumi_cli.providers.kubernetes"),
}
"""By Pulumi's name: the SDK whose version the engine asks for, and the module that serves it."""


def versions() -> dict[str, str]:
    """The version of each provider that a program of this environment asks for."""
    return {name: importlib.metadata.version(sdk) for name, (sdk, _) in PROVIDERS.items()}


def install(home: Path) -> None:
    """Write the plugins into a PULUMI_HOME, laid out as `pulumi plugin install` does it; what stands there already is written again.

    The plugin of a name and version is looked for in plugins/resource-NAME-vVERSION/pulumi-resource-NAME:
    https://github.com/pulumi/pulumi/blob/008a315303507297fd13aea17efd6516379cd4ec/sdk/go/common/workspace/plugins.go
    """
    for name, version in versions().items():
        path = executable(home, name, version)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(_script(PROVIDERS[name][1]))
        beside.chmod(0o755)
        # At once: a command that runs beside this one must never meet half a file.
        beside.replace(path)


def executable(home: Path, name: str, version: str) -> Path:
    """Where the executable of a plugin stands."""
    return home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _script(module: str) -> str:
    """A program that becomes the provider, run by this very Python."""
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n'
