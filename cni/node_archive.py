"""Archive of the node program: one file for images, reproducible byte for byte."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import cni

INTERPRETER = b"#!/usr/bin/python3\n"
"""The machine's own Python, 3.10 or later: docs/node-images.md."""
NAME = "gpufleet-node"
MAIN = "import sys\n\nfrom cni.node.cli import main\n\nsys.exit(main())\n"
MOMENT = (1980, 1, 1, 0, 0, 0)
"""Earliest time that a ZIP archive can contain: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT"""
UNIX, FILE_MODE = 3, 0o100644 << 16


def node_archive() -> bytes:
    """Return the program as a zipapp: cni and cni.node, uncompressed, sorted by name, with one fixed time."""
    root = Path(cni.__path__[0])
    sources = {"__main__.py": MAIN, "cni/__init__.py": (root / "__init__.py").read_text()}
    sources |= {f"cni/node/{path.name}": path.read_text() for path in (root / "node").glob("*.py")}
    held = io.BytesIO(INTERPRETER)
    held.seek(0, io.SEEK_END)
    with zipfile.ZipFile(held, "a") as archive:
        for name in sorted(sources):
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.create_system, entry.external_attr = UNIX, FILE_MODE
            archive.writestr(entry, sources[name])
    return held.getvalue()
