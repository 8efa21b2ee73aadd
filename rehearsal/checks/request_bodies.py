"""Check the requests of the two stacks against Azure's limits: request bodies, custom data, and network writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from components.plan import azure_limits
from components.plan.limit import Limit, amount, compare
from components.plan.model import RegionPlan
from components.plan.subscription_limits import network_writes, subscription_label
from rehearsal.checks.finding import Finding
from rehearsal.checks.usage import COUNTED
from rehearsal.program.graph import Graph, Resource

TAKEN = "Azure accepts every request: no body and no custom data in it is too large"
NETWORK = "microsoft.network"


def check_requests(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """Return network writes that differ from the plan's count, and requests that are too large; both graphs are results of azure_part."""
    graphs = {plan.base_stack: base, plan.stack: clusters}
    return (*_miscounted(network_writes(plan), graphs), *(finding for graph in graphs.values() for finding in _too_large(graph)))


def _miscounted(planned: Counter[tuple[str, str]], graphs: Mapping[str, Graph]) -> Iterator[Finding]:
    found = Counter((stack, _subscription(resource)) for stack, graph in graphs.items() for resource in graph if _is_network(resource))
    for stack, subscription in sorted({*planned, *found}):
        expected, count = planned[stack, subscription], found[stack, subscription]
        if expected != count:
            where = f"{subscription_label(subscription)}, update of {stack}: {azure_limits.NETWORK_WRITES.name}"
            yield Finding(COUNTED, where, f"{expected:,}", f"{count:,}", "find out which of the two counts is wrong")


def _is_network(resource: Resource) -> bool:
    """Return whether the resource belongs to Microsoft.Network."""
    return str(resource.id).rpartition("/providers/")[2].partition("/")[0].lower() == NETWORK


def _subscription(resource: Resource) -> str:
    return str(resource.id).split("/")[2]


def _too_large(graph: Graph) -> Iterator[Finding]:
    for resource in graph:
        # The inputs are the body except for the braces around properties and the name, which is in the URL.
        yield from _over(azure_limits.REQUEST_BODY, resource, len(json.dumps(resource.inputs)))
        data = _custom_data(resource.inputs)
        if data is not None:
            yield from _over(azure_limits.CUSTOM_DATA, resource, len(data))


def _over(limit: Limit, resource: Resource, use: int) -> Iterator[Finding]:
    """Yield a finding where a resource exceeds a limit."""
    row = compare(limit, str(resource.id or resource.name), use)
    if row.broken and row.bound is not None:
        found = f"{amount(use)} {limit.unit}"
        yield Finding(TAKEN, f"{row.where}: {limit.name}", f"at most {amount(row.bound)}", found, f"{limit.reason}; {limit.remedy}")


def _custom_data(inputs: Mapping[str, Any]) -> str | None:
    """Return the custom data of a machine, or of a scale set's machines, in base64."""
    profile = inputs.get("osProfile") or (inputs.get("virtualMachineProfile") or {}).get("osProfile") or {}
    return profile.get("customData")
