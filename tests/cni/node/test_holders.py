"""The holder of an address is read back as it was written, and an invalid file yields no holders."""

from __future__ import annotations

from pathlib import Path

import pytest

from cni.node import addresses
from cni.node.addresses import Holder


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "holders.json"
    known = {"10.0.0.5": Holder("vision", "train-0", "vision"), "10.0.0.6": Holder("kube-system", "coredns-1", "")}
    addresses.write_holders(path, known)
    assert addresses.read_holders(path) == known
    assert [entry.name for entry in tmp_path.iterdir()] == ["holders.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"10.0.0.5": 1}', '{"10.0.0.5": {"namespace": "a", "pod": 1, "team": ""}}', "[" * 100_000]
)
def test_a_file_that_is_no_list_of_holders_knows_nobody(tmp_path: Path, text: str) -> None:
    path = tmp_path / "holders.json"
    path.write_text(text)
    assert addresses.read_holders(path) == {}


def test_without_a_file_nobody_is_known(tmp_path: Path) -> None:
    assert addresses.read_holders(tmp_path / "holders.json") == {}
