"""The index of the runbooks contains every alert and every runbook."""

from __future__ import annotations

import re

from runbook import FOLDER

from cni import traffic_rules
from components.manifests.control_plane_alerts import alerts
from stacks.load import load_plan

INDEX = (FOLDER / "README.md").read_text()


def test_every_runbook_is_in_the_index_and_nothing_else_is() -> None:
    assert set(re.findall(r"\]\(([a-z-]+)\.md\)", INDEX)) == {path.stem for path in FOLDER.glob("*.md")} - {"README"}


def test_every_alert_is_in_the_index() -> None:
    rows = {name for row in re.findall(r"^\| ([A-Z]\w+[^|]*) \|", INDEX, re.MULTILINE) for name in re.findall(r"\w+", row)}
    (cluster,) = load_plan("dev").clusters
    named = {one.name for one in (*alerts("dev", cluster), *traffic_rules.alerts("dev", cluster))}
    assert {name for name in named if not name.startswith("EventsEtcd")} <= rows
    assert rows - named == {"EventsEtcd"}
