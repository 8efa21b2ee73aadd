"""Table of times to rotate a cluster, docs/time-to-rotate.md: `python -m bench.time_to_rotate`."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from components.plan.model import ClusterPlan, RegionPlan
from components.plan.region import plan_region
from components.plan.rotation_bounds import share
from components.spec.cluster import Cluster
from lifecycle.rotation.calendar import Calendar
from lifecycle.rotation.plan_policy import policy_of
from rehearsal.rotation.population import Figures, populate, shipped_figures
from rehearsal.rotation.region_rotation import RegionRun, rotate_cluster
from stacks.load import load_catalog, load_region

PAGE = Path(__file__).parents[1] / "docs" / "time-to-rotate.md"
COMMAND = "python -m bench.time_to_rotate"
REGION, STARTED = "southcentralus", 1_796_040_000
NODES = (1_000, 7_500)
BUDGETS = (2, 5, 10)
"""Percent of the machines."""
FAILING = (0, 2)
"""Percent of the machines whose rotation fails at first."""
GANGS = (30, 65)
"""Percent of the machines in gangs."""
SEEDS = (1, 2, 3)
LARGEST_GANG = 100
HEADINGS = ("nodes", "budget", "failing", "in gangs", "hours", "bound, hours", "times the bound", "GPU-hours lost", "jobs interrupted")


@dataclass(frozen=True)
class Cell:
    """One row of the table: number of nodes, and percentages."""

    nodes: int
    budget: int
    failing: int
    gangs: int


@dataclass(frozen=True)
class Row:
    """Medians over the seeds: hours, lower bound in hours, lost GPU-hours, interrupted jobs."""

    cell: Cell
    hours: float
    bound: float
    lost: float
    interrupted: float

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the row."""
        one = self.cell
        what = (f"{one.nodes:,}", f"{one.budget} %", f"{one.failing} %", f"{one.gangs} %")
        return (
            *what,
            f"{self.hours:.2f}",
            f"{self.bound:.2f}",
            f"{self.hours / self.bound:.2f}",
            f"{self.lost:,.0f}",
            f"{self.interrupted:,.0f}",
        )


def cells() -> list[Cell]:
    """Return the rows of the table in order."""
    return [Cell(*values) for values in itertools.product(NODES, BUDGETS, FAILING, GANGS)]


@cache
def region_of(nodes: int) -> tuple[RegionPlan, ClusterPlan]:
    """Return the plan of the first cluster of the shipped region with another number of nodes."""
    catalog = load_catalog()
    spec = load_region(REGION, catalog)
    document = spec.clusters[0].model_dump(mode="json")
    (pool,) = document["pools"]
    for one in document["tenancy"]["allocations"]:
        one["nodes"] = max(1, one["nodes"] * nodes // pool["nodes"])
    pool["nodes"] = nodes
    plan = plan_region(spec.model_copy(update={"clusters": (Cluster.model_validate(document),)}), catalog)
    return plan, plan.clusters[0]


def figures_of(cell: Cell) -> Figures:
    """Return the shipped figures with a cell's shares; what gangs leave contains balloons."""
    shipped = shipped_figures()
    gpu = shipped.gpu_machines
    gangs = cell.gangs / 100
    contents = gpu.model_copy(update={"gangs": gangs, "balloons": gpu.balloons + gpu.gangs - gangs})
    hard = shipped.conditions["hard"].model_copy(update={"failing_share": cell.failing / 100})
    return shipped.model_copy(update={"gpu_machines": contents, "conditions": {**shipped.conditions, "hard": hard}})


def measure(cell: Cell) -> Row:
    """Simulate one cell with every seed."""
    region, cluster = region_of(cell.nodes)
    budget = share(cell.nodes, cell.budget)
    pool = cluster.pools[0]
    largest = min(LARGEST_GANG, budget)
    cluster = replace(cluster, pools=(replace(pool, spec=pool.spec.model_copy(update={"largest_gang": largest})),))
    policy = replace(policy_of(region, cluster), machines=budget, teams={}, calendar=Calendar(), failed_share=1.0)
    results = []
    for seed in SEEDS:
        run = RegionRun(STARTED, seed, conditions="hard")
        people = populate(cluster, seed, figures_of(cell))
        results.append(rotate_cluster(region, cluster, run, STARTED, STARTED, population=people, policy=policy))
    return Row(
        cell,
        statistics.median(one.outcome.seconds / 3_600 for one in results),
        statistics.median(one.bound.seconds / 3_600 for one in results),
        statistics.median(one.outcome.losses.gpu_hours for one in results),
        statistics.median(len(one.outcome.losses.interruptions) for one in results),
    )


def page(rows: Iterable[Row]) -> str:
    """Return the page as Markdown."""
    return f"{TEXT.strip()}\n\n{_table(HEADINGS, (row.cells() for row in rows))}\n{AFTER}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, ["---:"] * len(headings), *rows))


def read_rows(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a page's table as texts."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    for line in lines[2:]:
        yield tuple(cell.strip() for cell in line.strip("|").split("|"))


TEXT = f"""
# Time to rotate

The table shows how long a rotation of one cluster takes in the simulation, by size, budget, failures and share of
gangs. Each row is the median of seeds {SEEDS[0]} to {SEEDS[-1]}. It is rendered by `{COMMAND}`: do not edit this page.

For your own region file, with its windows and freezes, use `gpufleet rotation plan`. [Rotation](rotation.md) explains
the decisions.
"""
AFTER = f"""
*Hours* are from the first start to the last verdict. *Budget* is the share of the cluster's machines that may be
unavailable. *Failing* is the share of machines whose rotation fails at first. *Times the bound* is the duration divided
by its lower bound.

## Assumptions

- The production decision core and its journal records run on a modelled fleet in virtual time.
- Jobs are a modelled population: `rehearsal/rotation/population.yaml` contains each number, and which of them have a
  source. What gangs leave of the machines contains balloons, services and low-priority pods, or is idle.
- 85 % of the jobs write a checkpoint when they get the signal. The others run until their deadline.
- Azure publishes no durations of reimage and boot. `rehearsal/azure/durations.py` contains the assumed ones. Azure's
  published call rates apply.
- The other values are those of the shipped cluster `research-a`. At most 10 machines of a scale set are unavailable, and
  8 scale sets may have more. There is one canary, and each good verdict lets 3 more machines start.
- Windows are always open, teams have no bound of their own, and failures do not stop the run. No gang is larger than
  {LARGEST_GANG} machines or than the budget.

## The lower bound

The bound takes from the simulation only the seconds that each machine is out of service: drain, reimage, boot, join and
preflight. It is the largest of these bounds, and each ignores the others:

- **Cluster, pool, team.** The sum of all seconds, divided by the machines that may be unavailable. At the beginning
  fewer are usable, because canaries and growth limit the window.
- **Scale set.** The sum of the seconds of its machines without a gang, divided by the machines that may be unavailable
  in it.
- **Scale sets at once.** The sum of the seconds in which gangs take scale sets below their own bound, divided by the
  scale sets allowed.
- **Longest node.** The seconds of the machine that is out of service for the longest time, after the fastest canary of
  its pool.
- **Starts.** The starts per minute and per day, and the requests to Azure per minute.
- **Jobs.** The end of each job whose gang is larger than a budget, and the seconds of its machines after it.

As a formula for the first: hours ≥ nodes × hours per node ÷ budget. With 7,500 nodes, a budget of 375 and 12 minutes
per node, a rotation takes at least 4 hours. Larger budgets therefore help in proportion, until the longest job's
deadline bounds the duration.

## Regenerate

```console
.venv/bin/{COMMAND}
```

The command takes some minutes, and writes this page. A test simulates one row again, and compares it with the page.
"""


def main() -> None:
    """Simulate every cell, and write the page."""
    todo = cells()
    # The largest cells first, so that no process ends alone.
    order = sorted(todo, key=lambda cell: -cell.nodes)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(todo)), multiprocessing.get_context("spawn")) as pool:
        rows = {}
        for row in pool.map(measure, order):
            rows[row.cell] = row
            print(f"bench: {len(rows)} of {len(todo)}: {' | '.join(row.cells())}", file=sys.stderr, flush=True)
    PAGE.write_text(page(rows[cell] for cell in todo), encoding="utf-8")
    print(PAGE, file=sys.stderr)


if __name__ == "__main__":
    main()
