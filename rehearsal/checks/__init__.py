"""Cross-checks of a rehearsal: registered resources against the plan, and against counts and flows computed from the graph."""

from components.plan.model import RegionPlan
from rehearsal.checks.address_layout import APART, FITS, check_addresses
from rehearsal.checks.finding import Finding
from rehearsal.checks.inventory import ALL_THERE, AS_PLANNED, NOTHING_ELSE, check_inventory
from rehearsal.checks.network_model import NetworkModel, azure_part
from rehearsal.checks.reachability import REACHABILITY, check_reachability
from rehearsal.checks.request_bodies import TAKEN, check_requests
from rehearsal.checks.role_assignments import GRANTS, check_role_assignments
from rehearsal.checks.usage import COUNTED, check_usage
from rehearsal.program.graph import Graph

CHECKS = (ALL_THERE, NOTHING_ELSE, AS_PLANNED, GRANTS, COUNTED, TAKEN, APART, FITS, *REACHABILITY)
"""All checks: every Finding's check is one of these."""


def cross_check(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """Return the findings of all cross-checks of a region's two stacks, in the order of CHECKS."""
    azure = azure_part(base), azure_part(clusters)
    return (*_against_plan(plan, *azure), *_from_graph(plan, *azure))


def against_plan(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """Return the differences between the graphs of a region's two stacks and its plan."""
    return _against_plan(plan, azure_part(base), azure_part(clusters))


def from_graph(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """Return the findings on the graphs: counted use, address ranges and reachability. The plan gives the role of each resource."""
    return _from_graph(plan, azure_part(base), azure_part(clusters))


def _against_plan(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    return (*check_inventory(plan, base, clusters), *check_role_assignments(plan, base, clusters))


def _from_graph(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    network = NetworkModel(base, clusters)
    return (
        *check_usage(plan, network),
        *check_requests(plan, base, clusters),
        *check_addresses(network),
        *check_reachability(plan, network),
    )


__all__ = ["CHECKS", "Finding", "against_plan", "cross_check", "from_graph"]
