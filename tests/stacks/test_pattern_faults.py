"""Reasons of texts that do not match the pattern of their key."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from components.spec.types import EXAMPLES, ClusterName, ImagePin, KubernetesVersion, TimeOfDay, VmSizeName
from rehearsal.azure.scenario import Scenario
from stacks.pattern_faults import LONGEST_EXPLAINED, pattern_fault

CASES: list[tuple[Any, str, str]] = [
    (ClusterName, "frontier-training", "has 17 characters, 5 more than the required form"),
    (ClusterName, "a_b", "has '_' as character 2, unlike the required form"),
    (ClusterName, "Dev", "has 'D' as character 1, unlike the required form"),
    (ClusterName, "dev-", "ends with '-', unlike the required form"),
    (ClusterName, "", "is empty, unlike the required form"),
    (ClusterName, "x" * (LONGEST_EXPLAINED + 1), "does not have the required form"),
    (ImagePin, "cpu", "is shorter than the required form"),
    (ImagePin, "cpu:2026.11.0", "has ':' as character 4, unlike the required form"),
    (ImagePin, "cpu@v2026.11.0", "has 'v' as character 5, unlike the required form"),
    (KubernetesVersion, "v1.36.3", "has 'v' as character 1, unlike the required form"),
    (KubernetesVersion, "1.36", "is shorter than the required form"),
    (TimeOfDay, "06:00:00", "has 8 characters, 3 more than the required form"),
    (VmSizeName, "Standard_D2-v3", "has '-' as character 12, unlike the required form"),
]


def pattern_of(kind: Any) -> str:
    """The pattern of a domain type."""
    return str(next(item.pattern for item in get_args(kind) if getattr(item, "pattern", None)))


@pytest.mark.parametrize(("kind", "text", "reason"), CASES, ids=[text[:20] or "empty" for _, text, _ in CASES])
def test_a_text_is_refused_with_what_is_wrong_in_it(kind: Any, text: str, reason: str) -> None:
    pattern = pattern_of(kind)
    assert pattern_fault(pattern, EXAMPLES[pattern], text) == reason


def test_every_pattern_of_region_and_scenario_files_has_an_example_that_matches() -> None:
    assert Scenario.model_fields
    assert {pattern: text for pattern, text in EXAMPLES.items() if not re.fullmatch(pattern, text)} == {}
