"""Prometheus alerts of gpufleet, each with a summary, a first step and a runbook.

https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import yaml

BY_CLUSTER = "region, cluster"
"""Labels that identify a cluster. Two regions may use the same name for a cluster."""


@dataclass(frozen=True)
class Source:
    """The cluster that a rule is about, by the labels of its series."""

    region: str
    cluster: str

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the cluster's series."""
        return {"region": self.region, "cluster": self.cluster}

    @property
    def matchers(self) -> str:
        """Matchers that select the cluster's series."""
        return ",".join(f'{name}="{value}"' for name, value in self.labels.items())


@dataclass(frozen=True)
class Alert:
    """One alert: minutes during which expression must be true, severity ("page" or "ticket"), summary, and the first step."""

    page: ClassVar[str]
    """Page of the alert's runbook, a file of docs/runbooks without its ending; it has a heading for each alert."""
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

    def runbook_url(self, pattern: str) -> str:
        """Return the URL of the alert's section, from a pattern with {page} and {section}."""
        return pattern.replace("{page}", self.page).replace("{section}", self.heading)

    def rule(self, source: Source, runbook_pattern: str) -> dict[str, Any]:
        """Return the alert as a rule for a cluster."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity, **source.labels},
            "annotations": {
                "summary": f"{source.region}/{source.cluster}: {self.summary}",
                "first": self.first,
                "runbook_url": self.runbook_url(runbook_pattern),
            },
        }


def file_of(rules: dict[str, Any]) -> str:
    """Return groups of rules as a YAML file."""
    return yaml.safe_dump(rules, sort_keys=False, width=160)
