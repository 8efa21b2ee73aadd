"""Contents of the report's tables: GPUs by model, and registered resources by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from components.plan.cost import CostRow
from rehearsal.program.graph import Graph

FAMILIES = {"azure-native": "Azure", "kubernetes": "Kubernetes", "pulumi": "Pulumi", "pulumi-python": "Pulumi"}


def gpus_by_model(rows: Iterable[CostRow]) -> tuple[tuple[str, int], ...]:
    """Return the GPUs of all machines by model, the most frequent model first."""
    models: Counter[str] = Counter()
    for row in rows:
        if row.size.gpus:
            models[row.size.gpu] += row.gpus
    return tuple(models.most_common())


@dataclass(frozen=True)
class TypeRow:
    """Number of resources of one type in the base stack and in the region's stack."""

    name: str
    base: int
    region: int

    @property
    def total(self) -> int:
        """Return the number of resources of the type in both stacks."""
        return self.base + self.region


def type_rows(base: Graph, clusters: Graph) -> dict[str, tuple[TypeRow, ...]]:
    """Return the rows of resource types by provider; the most frequent type is first."""
    counts = [Counter(resource.type for resource in graph.created_resources) for graph in (base, clusters)]
    groups: dict[str, list[TypeRow]] = {}
    for name in sorted({*counts[0], *counts[1]}):
        provider, _, short = name.partition(":")
        groups.setdefault(FAMILIES.get(provider, provider), []).append(TypeRow(short, counts[0][name], counts[1][name]))
    return {family: tuple(sorted(rows, key=lambda row: (-row.total, row.name))) for family, rows in groups.items()}
