"""An error is reported once, without its consequences, and the remedy leads to the correct value."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.file_problems import InvalidFileError
from stacks.load import REGIONS, load_catalog, load_region

CATALOG = load_catalog()
TEXT = (REGIONS / "southcentralus.yaml").read_text()


def changed(old: str, new: str) -> str:
    """The file of southcentralus with the first occurrence of a text replaced."""
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def problems(folder: Path, text: str) -> list[str]:
    """Lines of the refusal of a text as the file of southcentralus."""
    path = folder / "southcentralus.yaml"
    path.write_text(text)
    with pytest.raises(InvalidFileError) as refused:
        load_region(str(path), CATALOG)
    return [line.removeprefix(f"{folder}/") for line in str(refused.value).split("\n")]


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('kubernetes: "1.36.3"', 'kubernetes: "v1.36.3"', "clusters[0].kubernetes: "),
        ('kubernetes: "1.36.3"', 'kubernetes: "1.36"', "clusters[0].kubernetes: "),
        ("purpose: {kind: commons}", "purpose: {kind: commons", "the { that opens here has no }"),
        ('zones: ["1", "2", "3"]', 'zones: ["1", "2", "3"', "the [ that opens here has no ]"),
        ('zones: ["1", "2", "3"]', 'zones: ["1", "2, "3"]', ":36:22: the quote that opens here is not closed; close it on this line"),
        ("domain: fleet.internal", 'domain: "fleet.internal', ":8:9: the quote that opens here is not closed; close it on this line"),
        ("domain: fleet.internal", "domain: 'fleet.internal", ":8:9: the quote that opens here is not closed; close it on this line"),
        ('opens: "06:00"', 'opens: "06:00', ":71:47: the quote that opens here is not closed"),
        (
            "      - name: a100",
            "        name: a100",
            "clusters[2].pools[1].name: repeats the keys of the entry above, which starts in line 147; put `- ` ",
        ),
        (
            "      - name: a100",
            "        name: h100\n      - name: a100",
            "clusters[2].pools[0].name: the key is given twice: in line 147 and here",
        ),
        (
            "        - {name: pretraining, group: 0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4a02}\n        - {name: platform,",
            "          name: pretraining\n          group: x\n        # {name: platform,",
            "teams: a mapping of 2 keys is not a list; put a dash and a space before the first key of each entry",
        ),
    ],
)
def test_what_follows_from_a_mistake_is_not_told_beside_it(tmp_path: Path, old: str, new: str, path: str) -> None:
    (line,) = problems(tmp_path, changed(old, new))
    assert path in line


def test_mistakes_before_an_open_bracket_are_told_with_it(tmp_path: Path) -> None:
    text = changed("location: southcentralus", "location: on").replace("purpose: {kind: commons}", "purpose: {kind: commons", 1)
    assert [line.split(": ")[1] for line in problems(tmp_path, text)] == [
        "location",
        "the { that opens here has no } or lacks a comma; close it, and separate entries with commas",
    ]


def test_quotas_may_name_all_families_together_and_spot(tmp_path: Path) -> None:
    (tmp_path / "southcentralus.yaml").write_text(
        changed("quotas:\n", "quotas:\n  - {family: cores, vcpus: 2200000}\n  - {family: lowPriorityCores, vcpus: 0}\n")
    )
    assert [quota.family for quota in load_region(str(tmp_path / "southcentralus.yaml"), CATALOG).quotas[:2]] == [
        "cores",
        "lowPriorityCores",
    ]


def test_a_vm_size_nobody_knows_is_sent_to_the_list_of_sizes(tmp_path: Path) -> None:
    (line,) = problems(tmp_path, changed("Standard_ND96isr_H100_v5", "Standard_Nope"))
    assert "is no VM size that docs/region-file.md lists (a new one is a row of components/plan/vm_sizes.py); did you mean " in line
