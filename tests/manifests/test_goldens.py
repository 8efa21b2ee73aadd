"""Every object of a small and of a large cluster, as a reviewer reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from planned_objects import clusters

from components.manifests.objects import objects_by_concern


class ReviewDumper(yaml.SafeDumper):
    """YAML for people: lists indented, texts of several lines as blocks, nothing abbreviated by an alias."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, *_: bool, **__: bool) -> None:
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


ReviewDumper.add_representer(str, _text)


def texts(name: str) -> dict[str, str]:
    """The objects of a cluster as YAML, by concern."""
    return {
        concern: yaml.dump_all(items, Dumper=ReviewDumper, sort_keys=False, width=140, allow_unicode=True) if items else ""
        for concern, items in objects_by_concern(*clusters()[name]).items()
    }


def test_the_objects_of_a_small_cluster_are_those_that_were_reviewed(golden: Callable[[str, str], None]) -> None:
    for concern, text in texts("dev/dev").items():
        golden(f"manifests/dev/{concern}.yaml", text)


def test_the_differences_of_a_large_cluster_are_those_that_were_reviewed(golden: Callable[..., None]) -> None:
    small = texts("dev/dev")
    for concern, text in texts("southcentralus/frontier").items():
        golden(f"manifests/frontier/{concern}.diff", text, small[concern])
