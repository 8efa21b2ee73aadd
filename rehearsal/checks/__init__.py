"""Cross-checks of a rehearsal: what a program registered against the plan, and against itself from the other side."""

from components.plan.model import RegionPlan
from rehearsal.checks.address_layout import APART, FITS, laid_out
from rehearsal.checks.finding import Finding
from rehearsal.checks.inventory import ALL_THERE, AS_PLANNED, NOTHING_ELSE, compared
from rehearsal.checks.network_model import Fabric, azure_part
from rehearsal.checks.reachability import REACHABILITY, reached
from rehearsal.checks.request_bodies import TAKEN, sent
from rehearsal.checks.role_assignments import GRANTS, granted
from rehearsal.checks.usage import COUNTED, counted
from rehearsal.program.graph import Graph

CHECKS = (ALL_THERE, NOTHING_ELSE, AS_PLANNED, GRANTS, COUNTED, TAKEN, APART, FITS, *REACHABILITY)
"""What is checked: every Finding's check is one of these."""


def cross_check(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """All cross-checks of a region's two stacks, in the order of CHECKS."""
    azure = azure_part(base), azure_part(clusters)
    return (*_against_plan(plan, *azure), *_from_graph(plan, *azure))


def against_plan(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """What the graphs of a region's two stacks have otherwise than its plan: what is missing, too much, different or granted."""
    return _against_plan(plan, azure_part(base), azure_part(clusters))


def from_graph(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """What does not hold in the graphs themselves: uses counted anew, address ranges, and who reaches whom. The plan says who is who."""
    return _from_graph(plan, azure_part(base), azure_part(clusters))


def _against_plan(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    return (*compared(plan, base, clusters), *granted(plan, base, clusters))


def _from_graph(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    fabric = Fabric(base, clusters)
    return (*counted(plan, fabric), *sent(plan, base, clusters), *laid_out(fabric), *reached(plan, fabric))


__all__ = ["CHECKS", "Finding", "against_plan", "cross_check", "from_graph"]
