"""A region file with errors is rejected with all errors, one line each; the shipped files are valid."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from drafts import CATALOG, DOCUMENTS, TEXTS, problems

from gpufleet.cli import group
from stacks.file_problems import InvalidFileError
from stacks.load import load_region, region_names
from stacks.schema import schema


def changed(old: str, new: str, name: str = "southcentralus") -> str:
    """A shipped file with the first occurrence of a text replaced."""
    assert old in TEXTS[name]
    return TEXTS[name].replace(old, new, 1)


MISTAKES = [
    ("too many nodes", ("nodes: 7500", "nodes: 7501"), r"clusters\[0\]\.pools\[0\]\.nodes: 7501 .*at most 7500"),
    ("a misspelt key", ("pods_per_node: 7", "pod_per_node: 7"), r"clusters\[0\]\.pools\[0\]\.pod_per_node: .*did you mean pods_per_node"),
    (
        "a VM size nobody knows",
        ("Standard_ND96isr_H100_v5", "Standard_ND96isr_H100_v6"),
        r"vm_size: .*did you mean Standard_ND96isr_H100_v5",
    ),
    (
        "an image nobody published",
        ("nd-h100@2026.11.0", "nd-h100@2026.11.7"),
        r"image: .*published: nd-h100@2026\.10\.0, nd-h100@2026\.11\.0",
    ),
    ("an image for another role", ("image: nd-h100@2026.11.0", "image: etcd@2026.11.0"), r"image: .*no image for the role node"),
    (
        "a slot taken twice",
        ("slot: 1\n    purpose", "slot: 0\n    purpose"),
        r"clusters\[1\]\.slot: 0 is the slot of cluster research-a; slot 1 is free",
    ),
    ("a cluster name taken twice", ("name: research-b", "name: research-a"), r"clusters\[1\]\.name: .*is the name of cluster research-a"),
    (
        "a slot beyond the block",
        ("slot: 2\n    purpose", "slot: 7\n    purpose"),
        r"clusters\[2\]\.slot: 7 is beyond the 7 cluster slots of 10\.0\.0\.0/11, 0 to 6; slot 2 is free",
    ),
    (
        "pools on the same subnets",
        ("slot: 8\n", "slot: 4\n"),
        r"clusters\[2\]\.pools\[1\]\.slot: 4 lets its machines fill node subnets 4 to 5, and 4 is pool h100's; slot 5 is free",
    ),
    ("a name unlike the file's", ("name: southcentralus", "name: southcentral"), r"name: .*differs from the file's name"),
    (
        "InfiniBand where there is none",
        ("interconnect: ethernet", "interconnect: infiniband"),
        r"interconnect: .*no InfiniBand; write interconnect: ethernet",
    ),
    (
        "a team nobody declared",
        ("team: pretraining, pool: h100, nodes: 4500", "team: pretrainin, pool: h100, nodes: 4500"),
        r"allocations\[0\]\.team: .*did you mean pretraining",
    ),
    (
        "an owner nobody declared",
        ("{kind: dedicated, team: pretraining}", "{kind: dedicated, team: vision}"),
        r"clusters\[2\]\.purpose\.team: .*is no team of this cluster",
    ),
    (
        "a team named like a system namespace",
        ("{name: alignment,", "{name: kube-system,"),
        r"teams\[0\]\.name: .*is a system namespace",
    ),
    (
        "a label that kubelets refuse",
        ("labels: {role: services}", "labels: {kubernetes.io/role: services}"),
        r"labels.*is reserved for kubernetes\.io",
    ),
    ("a cluster named like the base stack", ("name: research-a", "name: base"), r"clusters\[0\]\.name: .*is the base stack's own name"),
    ("host bits in a block", ("10.0.0.0/11", "10.0.0.1/11"), r"address_space: .*write 10\.0\.0\.0/11"),
    ("a public block", ("10.0.0.0/11", "100.64.0.0/11"), r"address_space: .*outside 10\.0\.0\.0/8"),
    ("a version as a number", ('kubernetes: "1.36.3"', "kubernetes: 1.30"), r"clusters\[0\]\.kubernetes: .*quote"),
    (
        "a version that quotes alone would not mend",
        ('kubernetes: "1.36.3"', "kubernetes: 1.36"),
        r"clusters\[0\]\.kubernetes: 1\.36 is a number, not text; write a whole version in quotes, without a v: \"1\.36\.3\"",
    ),
    (
        "a cluster's name with capitals",
        ("name: research-a", "name: Research-A"),
        r"clusters\[0\]\.name: 'Research-A' has 'R' as character 1, unlike the required form; write 2 to 12 lower-case letters",
    ),
    (
        "a reservation without a group",
        ("priority_class: high", "capacity: reserved"),
        r"clusters\[2\]\.pools\[0\]\.reservation_group: is missing, and capacity: reserved needs it",
    ),
    (
        "a kubelet of another release",
        ('kubernetes: "1.36.3"', 'kubernetes: "1.38.0"'),
        r"image: .*carries kubelet 1\.36\.3, the cluster is 1\.38\.0",
    ),
    ("a misspelt location", ("location: southcentralus", "location: southcentralsu"), r"location: .*did you mean southcentralus\?"),
    (
        "a location without zones",
        ("location: southcentralus", "location: westus"),
        r"location: .*availability zones; did you mean westus[23]\?",
    ),
    (
        "a quota of a family that is none",
        ("quotas:\n", "quotas:\n  - {family: standardNDSH100v5Famly, vcpus: 1}\n"),
        r"quotas\[0\]\.family: .*did you mean standardNDSH100v5Family\?",
    ),
    (
        "a quota given twice",
        ("quotas:\n", "quotas:\n  - {family: standardESv5Family, vcpus: 1}\n  - {family: standardESv5Family, vcpus: 2}\n"),
        r"quotas\[1\]\.family: .*declared already, by quotas\[0\]",
    ),
    (
        "a gang larger than its pool",
        ("largest_gang: 64", "largest_gang: 7499"),
        r"pools\[1\]\.largest_gang: 7499 is more than the pool's \d+ machines; write at most",
    ),
    (
        "a day named twice",
        ("days: [mon, ", "days: [mon, mon, "),
        r"windows\[0\].days: lists mon twice; list each day once",
    ),
    (
        "a priority class without a deadline",
        ("{balloon: 0, low: 10, normal: 60, high: 240}", "{high: 240}"),
        r"rotation\.deadline_minutes: has no balloon, low, normal; write minutes from 0 to 10080 for each of balloon, low, normal, high$",
    ),
    (
        "a budget larger than its cluster",
        ("nodes: 7500", "nodes: 300"),
        r"clusters\[0\]\.rotation\.budget\.machines: 375 is more than the cluster's 300 machines; write at most 300$",
    ),
    (
        "a price of a misspelt size, which must suggest a size in use",
        ("clusters:\n", "prices:\n  - {vm_size: Standard_E16s_v4, usd_per_hour: 1}\nclusters:\n"),
        r"prices\[0\]\.vm_size: 'Standard_E16s_v4' is no VM size .*did you mean Standard_D16s_v5\?",
    ),
    (
        "a UUID with a digit too few",
        ("-6a1f0f0f5a10", "-6a1f0f0f5a1"),
        r"access\.tenant: .* is no UUID: it has 31 hexadecimal digits, not 32; write",
    ),
    (
        "a UUID with a letter",
        ("-6a1f0f0f5a10", "-6a1f0f0f5a1o"),
        r"access\.tenant: .* is no UUID: it has 'o', which is no hexadecimal digit; write",
    ),
    ("no clusters", (TEXTS["southcentralus"][TEXTS["southcentralus"].index("clusters:") :], "clusters: []\n"), r"clusters: .*at least 1"),
]


@pytest.mark.parametrize("name", region_names())
def test_a_shipped_region_is_read_and_fits_its_schema(name: str) -> None:
    assert load_region(name, CATALOG).name == name
    jsonschema.validate(yaml.safe_load(TEXTS[name]), schema())
    assert TEXTS[name].startswith("# yaml-language-server: $schema=schema.json\n")


@pytest.mark.parametrize(("edit", "expected"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_told_at_its_line_with_what_would_be_right(tmp_path: Path, edit: tuple[str, str], expected: str) -> None:
    text = changed(*edit)
    lines = problems(tmp_path, text)
    hits = [line for line in lines if re.search(expected, line)]
    assert len(hits) >= 1, lines
    number = int(re.match(r"southcentralus\.yaml:(\d+): ", hits[0])[1])  # type: ignore[index]
    assert 1 <= number <= len(text.splitlines())


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = TEXTS["southcentralus"]
    text = (
        text.replace("nodes: 7500", "nodes: 7501", 1)
        .replace("slot: 1\n    purpose", "slot: 0\n    purpose")
        .replace("pool: cpu", "pool: cpus")
    )
    text = text.replace("gateway: VpnGw3AZ", "gatway: VpnGw3AZ")
    lines = problems(tmp_path, text)
    assert len(lines) == 4, lines
    assert [int(line.split(":")[1]) for line in lines] == sorted(int(line.split(":")[1]) for line in lines)


def test_too_many_addresses_are_reported_in_place_of_the_overlap_that_they_cause(tmp_path: Path) -> None:
    before, cluster, after = TEXTS["southcentralus"].partition("name: frontier")

    def draft(pods: str) -> str:
        return before + cluster + after.replace("pods_per_node: 7", f"pods_per_node: {pods}", 1)

    (line,) = problems(tmp_path, draft("30"))
    assert "clusters[2].pools[0].pods_per_node: 30 gives each of 5,000 machines 31 addresses" in line
    assert "need 175,552 of at most 65,536 private addresses" in line
    fewer = re.search(r"write at most (\d+), or move machines to another cluster$", line)
    assert fewer
    (tmp_path / "southcentralus.yaml").write_text(draft(fewer[1]))
    result = CliRunner().invoke(group, ["check", str(tmp_path / "southcentralus.yaml")])
    assert (result.exit_code, "none broken" in result.output) == (0, True)


def test_overlapping_blocks_of_two_regions_are_refused_with_a_free_block(tmp_path: Path) -> None:
    lines = problems(tmp_path, changed("10.0.0.0/11", "10.32.0.0/11"))
    result = [line.rpartition(": ")[2] for line in lines]
    assert "'10.32.0.0/11' overlaps 10.48.0.0/13 of region dev; 10.0.0.0/11 is free" in result
    assert "'10.32.0.0/11' overlaps 10.32.0.0/12 of region swedencentral; 10.0.0.0/11 is free" in result


def test_a_draft_anywhere_is_held_against_the_shipped_regions(tmp_path: Path) -> None:
    lines = problems(tmp_path, TEXTS["dev"].replace("name: dev\nlocation", "name: draft\nlocation", 1), "draft")
    (result,) = (line.rpartition(": ")[2] for line in lines)
    found = re.fullmatch(r"'10\.48\.0\.0/13' overlaps 10\.48\.0\.0/13 of region dev; (10\.\S+) is free", result)
    assert found
    taken = [ipaddress.ip_network(document["address_space"]) for document in DOCUMENTS.values()]
    assert not [block for block in taken if block.overlaps(ipaddress.ip_network(found[1]))]


def test_an_unknown_region_names_the_nearest_known() -> None:
    result = CliRunner().invoke(group, ["check", "southcentral"], standalone_mode=False)
    assert isinstance(result.exception, InvalidFileError)
    assert "did you mean southcentralus?" in str(result.exception)
