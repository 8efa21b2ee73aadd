"""gpufleet image-files: the programs of this repository that a build puts into an image as files, and not from the wheel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from cni.node_archive import NAME, node_archive

FILES: Mapping[str, Mapping[str, Callable[[], bytes]]] = {"node": {NAME: node_archive}}
"""Programs by role of the image and name; node images have the machine's Python, on which the wheel may not be installable."""


@click.command(name="image-files", short_help="Write the programs that an image's build installs.")
@click.argument("role", type=click.Choice(list(FILES)))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, metavar="DIR", help="Folder to write into.")
def image_files(role: str, out: Path) -> None:
    """Write the programs of images of a ROLE into a folder, and tell the SHA-256 of each.

    The same sources give the same bytes on every machine. node: gpufleet-node, for /usr/local/sbin.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, made in FILES[role].items():
            content = made()
            path = out / name
            path.write_bytes(content)
            path.chmod(0o755)
            click.echo(f"{hashlib.sha256(content).hexdigest()}  {path}")
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}; name a folder that you may write to with --out") from None
