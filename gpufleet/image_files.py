"""gpufleet image-files: write the programs of this repository that an image build installs as files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from cni.node_archive import NAME, node_archive

FILES: Mapping[str, Mapping[str, Callable[[], bytes]]] = {"node": {NAME: node_archive}}
"""Programs by image role and name. Node images use the Python of the base image, which may be too old for the wheel."""


@click.command(name="image-files", short_help="Write the programs that an image's build installs.")
@click.argument("role", type=click.Choice(list(FILES)))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, metavar="DIR", help="Folder to write into.")
def image_files(role: str, out: Path) -> None:
    """Write the programs for images of ROLE into a folder, and print the SHA-256 of each.

    The files are reproducible. Role node: gpufleet-node, for /usr/local/sbin.
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
        raise click.ClickException(f"{error.filename}: {error.strerror}; give a writable folder with --out") from None
