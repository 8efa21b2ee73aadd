"""Decides where a provider process has the shapes of bodies from: a file that an earlier one wrote, or the official clients.

Each provider resource of the program has a process of its own, and reading the clients is most of what one would cost.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from rehearsal.azure.sdk_shapes import MODELS, shape_of, take
from rehearsal.azure.shape_table import read, written
from rehearsal.binaries.cache import base_folder

SOURCES = ("attribute_maps.py", "additional_shapes.py", "rest_fields.py", "sdk_shapes.py", "shape_table.py", "shapes.py")
"""Files of rehearsal/azure that decide what a shape is."""


@cache
def take_known_shapes() -> None:
    """Take the shapes out of the file of these clients; where there is none yet, read the clients and write it."""
    file = base_folder() / "azure-shapes" / f"{_version()}.json"
    try:
        take(read(json.loads(file.read_bytes())))
    except (OSError, AttributeError, LookupError, TypeError, ValueError):
        shapes = {resource_type: shape_of(resource_type) for resource_type in MODELS}
        text = json.dumps(written(shapes), separators=(",", ":"))
        # Whoever may not write there reads the clients each time.
        with suppress(OSError):
            _write(file, text)


def _version() -> str:
    """What the file depends on: versions of the clients, and our way of reading them."""
    digest = hashlib.sha256()
    spec = importlib.util.find_spec("azure")
    for place in spec.submodule_search_locations or () if spec else ():
        for name in sorted(one.name for one in Path(place).parent.glob("azure_mgmt_*.dist-info")):
            digest.update(name.encode())
    here = Path(__file__).parents[3] / "azure"
    for name in SOURCES:
        digest.update((here / name).read_bytes())
    return digest.hexdigest()[:24]


def _write(file: Path, text: str) -> None:
    """Write a file that others may read meanwhile: it is there whole, or not."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as unfinished:
            unfinished.write(text)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
