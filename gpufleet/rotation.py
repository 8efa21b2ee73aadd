"""gpufleet rotation: the group of verbs about replacing the nodes of a region."""

from __future__ import annotations

import click

from gpufleet.rotation_journal import journal
from gpufleet.rotation_plan import plan


@click.group(short_help="Forecast a rotation of nodes, and read what one has done.")
def rotation() -> None:
    """Rotate the nodes of a region to new images and boot files.

    \b
    A rotation replaces the OS disk of each node that is not on the image and boot files of its plan. Nodes start while
    budgets allow it, and not in waves: when one is ready, the next one starts.
      order     first one canary per pool; then idle nodes and balloons; then gang by gang, the cheapest to interrupt first
      gangs     all nodes of a gang start together, so that a job is interrupted once, after a checkpoint
      budgets   bound the unavailable machines of the cluster, its pools, teams and scale sets, counted for any reason
      windows   nodes start only in the windows of the region file, and on no frozen day; started nodes continue
      stop      too many failures stop the run; it can be continued
    Each node is recorded in a journal: pending, cordoned, draining, drained, replacing, joining, preflight, ready; or
    removed, failed, blocked. docs/rotation.md explains each decision.

    \b
    These verbs only read, and change nothing in Azure or in a cluster:
      gpufleet rotation plan southcentralus        forecast the end, the order, blockers, lost GPU-hours and interrupted jobs
      gpufleet rotation journal run.jsonl          print the state of a run, and which nodes need an operator
    """


rotation.add_command(plan)
rotation.add_command(journal)
