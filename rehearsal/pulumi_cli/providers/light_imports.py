"""Lets a provider process import Pulumi's protocol without Pulumi's SDK, whose import is most of what such a process would cost.

`import pulumi` alone takes half a second of CPU and 30 MB; the modules below pulumi.runtime.proto need nothing of it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

PACKAGES = ("pulumi", "pulumi.runtime")


def quieten_grpc() -> None:
    """Keep gRPC from writing on stderr that a connection ended, which the engine would show; to be called before grpc is imported."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def leave_the_sdk_out() -> None:
    """From here on `pulumi.runtime.proto` is imported by itself; nothing else of pulumi's can be.

    Nothing is done where pulumi is imported already.
    """
    if PACKAGES[0] in sys.modules:
        return
    found = importlib.util.find_spec(PACKAGES[0])
    if found is None or not found.submodule_search_locations:
        return
    (folder,) = found.submodule_search_locations
    for name in PACKAGES:
        package = ModuleType(name)
        package.__path__ = ["/".join((folder, *name.split(".")[1:]))]
        sys.modules[name] = package
