"""Prometheus alerts of gpufleet, each with a summary, a first step and a runbook.

https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import yaml


@dataclass(frozen=True)
class Alert:
    """One alert: minutes during which expression must be true, severity ("page" or "ticket"), summary, and the first step."""

    document: ClassVar[str]
    """Path of the runbook in the repository; it has a heading for each alert."""
    name: str
    expression: str
    minutes: int
    severity: str
    summary: str
    first: str

    @property
    def heading(self) -> str:
        """Heading in the runbook."""
        return self.name.lower()

    @property
    def runbook(self) -> str:
        """Path and heading of the runbook."""
        return f"{self.document}#{self.heading}"

    def rule(self, cluster: str) -> dict[str, Any]:
        """Return the alert as a rule for a cluster."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity, "cluster": cluster},
            "annotations": {"summary": f"{cluster}: {self.summary}", "first": self.first, "runbook": self.runbook},
        }


def file_of(rules: dict[str, Any]) -> str:
    """Return groups of rules as a YAML file."""
    return yaml.safe_dump(rules, sort_keys=False, width=160)
