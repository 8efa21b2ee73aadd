"""Texts of region files and drafts, and the problems of a draft."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from stacks.file_problems import InvalidFileError
from stacks.load import REGIONS, load_catalog, load_region, region_names

CATALOG = load_catalog()
TEXTS = {name: (REGIONS / f"{name}.yaml").read_text() for name in region_names()}
DOCUMENTS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}


def problems(folder: Path, text: str, name: str = "southcentralus") -> list[str]:
    """Lines of the refusal of a text as a region file, alone in a folder of its own, the folder taken off."""
    with TemporaryDirectory(dir=folder) as alone:
        # A draft stands for the region of its name when another beside it is judged, so none may be left from before.
        path = Path(alone) / f"{name}.yaml"
        path.write_text(text)
        with pytest.raises(InvalidFileError) as refused:
            load_region(str(path), CATALOG)
        return [line.removeprefix(f"{alone}/") for line in str(refused.value).split("\n")]
