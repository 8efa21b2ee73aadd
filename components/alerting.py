"""Says what an alert of ours is and how Prometheus reads it: who is woken reads what it means, what to do first, and where to read on.

https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import yaml


@dataclass(frozen=True)
class Alert:
    """One alert: minutes for which expression must hold, who is told ("page" or "ticket"), what it means and what to do first."""

    document: ClassVar[str]
    """The runbook, a place in the repository, which has a heading for each alert."""
    name: str
    expression: str
    minutes: int
    severity: str
    summary: str
    first: str

    @property
    def heading(self) -> str:
        """What the runbook has it under."""
        return self.name.lower()

    @property
    def runbook(self) -> str:
        """Place in the repository's documents."""
        return f"{self.document}#{self.heading}"

    def rule(self, cluster: str) -> dict[str, Any]:
        """The alert of a cluster as a rule."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity, "cluster": cluster},
            "annotations": {"summary": f"{cluster}: {self.summary}", "first": self.first, "runbook": self.runbook},
        }


def file_of(rules: dict[str, Any]) -> str:
    """Groups of rules as a file, YAML."""
    return yaml.safe_dump(rules, sort_keys=False, width=160)
