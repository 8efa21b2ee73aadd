"""Cache file for the shapes of request bodies, which are otherwise read from the official clients.

Each provider resource of the program has its own process, and reading the clients is most of the cost of one.
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

from rehearsal.azure.sdk_shapes import MODELS, add_shapes, shape_of
from rehearsal.azure.shape_table import decode_shapes, encode_shapes
from rehearsal.binaries.cache import base_folder

SOURCES = ("additional_shapes.py", "sdk_models.py", "sdk_shapes.py", "shape_table.py", "shapes.py")
"""Files of rehearsal/azure on which the shapes depend."""


@cache
def take_known_shapes() -> None:
    """Load the shapes from the cache file; where there is none, read the clients and write it."""
    file = base_folder() / "azure-shapes" / f"{_version()}.json"
    try:
        add_shapes(decode_shapes(json.loads(file.read_bytes())))
    except (OSError, AttributeError, LookupError, TypeError, ValueError):
        shapes = {resource_type: shape_of(resource_type) for resource_type in MODELS}
        text = json.dumps(encode_shapes(shapes), separators=(",", ":"))
        # A process without write access reads the clients each time.
        with suppress(OSError):
            _write(file, text)


def _version() -> str:
    """Return a hash of everything that the file depends on: versions of the clients, and the code that reads them."""
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
    """Write a file atomically, because other processes may read it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as unfinished:
            unfinished.write(text)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
