"""Start of a provider process, which imports Pulumi's protocol without Pulumi's SDK.

`import pulumi` alone takes half a second of CPU and 30 MB, most of what such a process costs. The modules below pulumi.runtime.proto do
not import it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

PACKAGES = ("pulumi", "pulumi.runtime")


def run_provider(module: str, name: str) -> None:
    """Serve the provider class of a module until the engine ends or a signal arrives; prints the port, exits the process."""
    # gRPC writes on stderr that a connection ended, and the engine would show it. It reads the variable when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    skip_the_sdk()
    from rehearsal.pulumi_cli.providers.server import main

    sys.exit(main(getattr(importlib.import_module(module), name), sys.argv[1:]))


def skip_the_sdk() -> None:
    """Make `pulumi.runtime.proto` importable by itself, and nothing else of pulumi's; do nothing where pulumi is already imported."""
    if PACKAGES[0] in sys.modules:
        return
    spec = importlib.util.find_spec(PACKAGES[0])
    if spec is None or not spec.submodule_search_locations:
        return
    (folder,) = spec.submodule_search_locations
    for name in PACKAGES:
        package = ModuleType(name)
        package.__path__ = ["/".join((folder, *name.split(".")[1:]))]
        sys.modules[name] = package
