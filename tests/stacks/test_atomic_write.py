"""Atomic writing: the old text or the new one, and no parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.atomic_write import write_atomically


def test_a_written_file_has_the_text_and_the_mode_and_no_part_remains(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text("old")
    assert write_atomically(path, "müller\n", mode=0o600) == path
    assert path.read_text(encoding="utf-8") == "müller\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_keeps_the_old_file_and_leaves_no_part(tmp_path: Path) -> None:
    folder = tmp_path / "settings"
    folder.mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(folder, "new")
    assert list(tmp_path.iterdir()) == [folder]
