"""Every object of a small and of a large cluster, as a reviewer reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
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


@pytest.mark.parametrize("name", ["dev/dev", "southcentralus/frontier"])
def test_the_objects_of_a_cluster_are_those_that_were_reviewed(name: str, golden: Callable[[str, str], None]) -> None:
    for concern, items in objects_by_concern(*clusters()[name]).items():
        text = yaml.dump_all(items, Dumper=ReviewDumper, sort_keys=False, width=140, allow_unicode=True) if items else ""
        golden(f"manifests/{name.partition('/')[2]}/{concern}.yaml", text)
