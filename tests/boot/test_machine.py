"""A boot document contains exactly the machine's files, is stable, and is within Azure's bound."""

from __future__ import annotations

import base64

import pytest
import yaml
from boot_machines import machines, regions
from hypothesis import given
from hypothesis import strategies as st

from components.boot.machine import CUSTOM_DATA_BYTES, BootFile, CustomDataTooLargeError, MachineBoot, cloud_config, custom_data
from components.boot.node import boot_nodes
from components.boot.unit import exec_start

PRINTABLE = st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" ")
LINES = st.lists(st.text(PRINTABLE, max_size=60), max_size=8)


@given(first=st.text(PRINTABLE, min_size=1), rest=LINES, last=st.text(PRINTABLE, min_size=1))
def test_any_text_that_a_boot_file_takes_comes_back_from_the_document(first: str, rest: list[str], last: str) -> None:
    content = "\n".join((f"#{first}", *rest, last)) + "\n"
    boot = MachineBoot("any", (BootFile("/a", "x\n"), BootFile("/b", content, "0600"), BootFile("/c", "y\n")), ("a.service",))
    entries = yaml.safe_load(cloud_config(boot))["write_files"]
    assert [entry["content"] for entry in entries] == ["x\n", content, "y\n"]
    assert entries[1] == {"path": "/b", "owner": "root:root", "permissions": "0600", "content": content}


@pytest.mark.parametrize(
    "content", ["", "no newline", "\nfirst line empty\n", " indented\n", "tab\there\n", "bell\x07\n", "two newlines\n\n"]
)
def test_text_that_a_document_would_change_is_refused(content: str) -> None:
    with pytest.raises(ValueError, match="/etc/file: needs printable lines"):
        BootFile("/etc/file", content)


@pytest.mark.parametrize("name", machines())
def test_every_document_holds_every_file_and_only_loads_and_enables_units(name: str) -> None:
    boot = machines()[name]
    document = yaml.safe_load(cloud_config(boot))
    assert {entry["path"]: entry["content"] for entry in document["write_files"]} == {item.path: item.content for item in boot.files}
    assert document["runcmd"] == [["systemctl", "daemon-reload"], ["systemctl", "enable", "--now", "--no-block", *boot.enable]]
    assert set(document) == {"write_files", "runcmd"}


def test_every_scale_set_of_every_region_stays_under_azures_bound_with_room_for_half_as_much_again() -> None:
    sizes = {
        scale_set.name: len(cloud_config(boot).encode())
        for region in regions()
        for cluster in region.clusters
        for pool in cluster.pools
        for scale_set, boot in zip(pool.scale_sets, boot_nodes(region, cluster, pool), strict=True)
    }
    sizes |= {name: len(cloud_config(boot).encode()) for name, boot in machines().items()}
    assert len(sizes) > 225
    assert max(sizes.values()) * 1.5 < CUSTOM_DATA_BYTES


def test_custom_data_is_the_document_in_base64_and_the_same_each_time() -> None:
    region = regions()[0]
    cluster = region.clusters[0]
    pool = cluster.pools[0]
    first, second = (custom_data(boot_nodes(region, cluster, pool)[0]) for _ in range(2))
    assert first == second
    assert base64.b64decode(first).decode() == cloud_config(boot_nodes(region, cluster, pool)[0])


def test_a_document_over_azures_bound_is_refused_with_its_size_the_bound_and_what_to_do() -> None:
    boot = MachineBoot("node", (BootFile("/big", "x" * CUSTOM_DATA_BYTES + "\n"),), ())
    with pytest.raises(CustomDataTooLargeError) as caught:
        custom_data(boot)
    assert caught.value.value == len(cloud_config(boot)) > caught.value.bound == 65_535
    assert "into the machine's image" in caught.value.remedy


@pytest.mark.parametrize("value", ["two words", "a'quote", 'a"quote', "back\\slash", "new\nline"])
def test_a_flag_that_a_unit_file_would_split_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="--flag has a space, a quote or a backslash"):
        exec_start("/program", {"flag": value})


def test_each_flag_stands_on_a_line_of_its_own_with_percent_signs_kept_from_systemd() -> None:
    assert exec_start("/program", {"a": "1%", "b": ("x", "y")}) == "ExecStart=/program \\\n  --a=1%% \\\n  --b=x,y"
