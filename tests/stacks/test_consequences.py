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
        ('opens: "06:00"', 'opens: "06:00', ":78:47: the quote that opens here is not closed"),
        (
            "      - name: a100",
            "        name: a100",
            "clusters[2].pools[1].name: repeats the keys of the entry above, which starts in line 165; put `- ` ",
        ),
        (
            "      - name: a100",
            "        name: h100\n      - name: a100",
            "clusters[2].pools[0].name: the key is given twice: in line 165 and here",
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


def two_clusters(address_space: str, slots: tuple[int, int]) -> str:
    """The file of dev with a copy of its cluster, in an address space with given slots."""
    head, _, cluster = (REGIONS / "dev.yaml").read_text().partition("clusters:\n")
    both = [cluster.replace("    slot: 0\n    purpose", f"    slot: {slot}\n    purpose") for slot in slots]
    return head.replace("10.48.0.0/13", address_space) + "clusters:\n" + both[0] + both[1].replace("name: dev\n", "name: second\n")


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("slot: 8\n", "slot: 4\n"), ("slot: 16\n", "slot: 5\n")], ["slot 6 is free for its 2", "slot 8 is free for its 1"]),
        ([("slot: 1\n    p", "slot: 0\n    p"), ("slot: 2\n    p", "slot: 31\n    p")], ["slot 1 is free", "slot 2 is free"]),
        ([("machines: 375", "machines: 9000")], ["write at most 7500"]),
        ([("10.0.0.0/11", "10.48.0.0/12")], ["10.0.0.0/12 is free"]),
        ([("pods_per_node: 7", "pods_per_node: 256")], ["write at most 110"]),
        ([("count: 5", "count: 10001")], ["write at most 250"]),
        ([("count: 3", "count: 10001")], ["use 3, 5 or 7 members"]),
        ([("largest_gang: 64", "largest_gang: 1801")], ["write at most 100"]),
        ([("nodes: 1800\n", "nodes: 0\n")], ["leave largest_gang out, or raise nodes"]),
        ([("how: reimage", "how: reimage\n      hoe: replace")], ["leave it out: how is there already"]),
        (
            [("tenant: 7b0c9a44-2f0e-4f57-9c39-6a1f0f0f5a10", "tenant: 5")],
            ["write 8-4-4-4-12 hexadecimal digits (Entra ID tenant of people and managed identities)"],
        ),
    ],
)
def test_each_remedy_of_a_file_names_a_value_that_is_accepted(tmp_path: Path, edits: list[tuple[str, str]], expected: list[str]) -> None:
    text = TEXT
    for old, new in edits:
        text = text.replace(old, new, 1)
    assert [line.split("; ", 1)[1] for line in problems(tmp_path, text)] == expected


def test_a_cluster_without_a_free_slot_is_sent_to_a_larger_address_space(tmp_path: Path) -> None:
    path = tmp_path / "dev.yaml"
    path.write_text(two_clusters("10.48.0.0/13", (0, 0)))
    with pytest.raises(InvalidFileError) as refused:
        load_region(str(path), CATALOG)
    assert str(refused.value).endswith("; all slots are used: write address_space: 10.48.0.0/12, or move a cluster to another region")
    path.write_text(two_clusters("10.48.0.0/12", (0, 1)))
    assert len(load_region(str(path), CATALOG).clusters) == 2
