"""gpufleet schema: write the JSON schemas of region and scenario files, and the reference pages of region files and restrictions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stacks.load import REGIONS, ROOT
from stacks.schema import reference, schema_text


@click.command(short_help="Write the JSON schemas and the region file's reference.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if a file is out of date.")
def schema(only_check: bool) -> None:
    """Write stacks/regions/schema.json and docs/region-file.md from the models in components/spec, rehearsal/scenarios/schema.json, and
    docs/azure-restrictions.md from the table in rehearsal/azure/restrictions.

    Editors complete and validate region and scenario files with these schemas, which every such file references in its first line.
    """
    texts = _texts()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not only_check:
            path.write_text(texts[path])
        click.echo(f"{_relative(path)}: {'stale; run gpufleet schema' if only_check else 'written'}")
    sys.exit(1 if stale and only_check else 0)


def _texts() -> dict[Path, str]:
    """Return the text of each file that the verb writes."""
    from rehearsal.azure import scenario_files
    from rehearsal.azure.restrictions import page

    return {
        REGIONS / "schema.json": schema_text(),
        ROOT / "docs" / "region-file.md": reference(),
        ROOT / "docs" / "azure-restrictions.md": page.page(),
        scenario_files.SCHEMA: scenario_files.schema_text(),
    }


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))
