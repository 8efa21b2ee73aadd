"""Benchmark of pod networking, accounting and shaping, on machines in network namespaces."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import click

from bench.command import BenchOutput, run_command
from bench.figures import Figure
from bench.network.additions import Added, additions
from bench.network.forwarding import Ratios, Window, measured, site
from bench.network.forwarding_setups import SHAPED
from bench.network.scrape import PODS, scrapes
from bench.results import record_option
from rehearsal.binaries.find import BinariesMissingError, cni_plugins
from tests.support.azure_network.cni_calls import CniError
from tests.support.azure_network.namespaces import CommandError, why_not
from tests.support.azure_network.network import Azure, fabric

KEPT = 0.97
"""Lowest ratio of forwarding over bare forwarding, for TCP and for packets between pods."""

ADD_MS, ADD_AT_ONCE_MS = 60.0, 500.0
SCRAPE_MS, SCRAPE_MB = 20.0, 40.0
PARTS = ("forwarding", "additions", "scrape")


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--pairs", type=click.IntRange(2), default=30, show_default=True, help="Alternating windows bare and with, for each ratio.")
@click.option("--seconds", type=click.FloatRange(0.05), default=0.3, show_default=True, help="Length of a window.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Rounds of 30 ADDs, each way.")
@click.option("--only", type=click.Choice(PARTS), multiple=True, default=PARTS, help="Measure this part only.")
@record_option
def main(pairs: int, seconds: float, rounds: int, only: tuple[str, ...], record: bool) -> None:
    """Measure what a pod's packets, its start, and a scrape of the machine's traffic cost.

    \b
    forwarding  a pod's TCP and 64-byte UDP packets, to the internet and to a pod of another machine, with nothing in the way,
                the four published rules, rules and ipset, and shaping too; each ratio by pairs of windows under one flow,
                shown as the lower bound with 95 % confidence, per second and per second of CPU
    additions   CNI ADD by the real plugins on a machine of 31 addresses
    scrape      the traffic exporter on a machine of 250 pods

    Needs root. Exits 0 if all values are within their bounds, 1 if one is not, 2 on a failure, 130 if interrupted.
    """
    if reason := why_not():
        raise click.ClickException(reason)
    output = BenchOutput()
    with fabric(cni_plugins(output.say)) as azure:
        figures = list(_figures(azure, output, pairs, seconds, rounds, only))
    if record:
        output.record("network", "Pod networking", "python -m bench.network", figures)
    output.conclude(figures)


def _figures(azure: Azure, output: BenchOutput, pairs: int, seconds: float, rounds: int, only: tuple[str, ...]) -> Iterator[Figure]:
    if "additions" in only:
        output.say("CNI ADD")
        for added, bound in zip(additions(azure, rounds), (ADD_MS, ADD_AT_ONCE_MS), strict=True):
            yield from _of_additions(added, bound)
    if "scrape" in only:
        output.say("scrapes")
        scraped = scrapes(azure, 100)
        last = f"the longest of 100 {scraped.seconds[-1] * 1000:.0f} ms, {scraped.length:,} bytes"
        yield Figure(f"scrape, {PODS} pods", statistics.median(scraped.seconds) * 1000, "ms", SCRAPE_MS, f"median; {last}")
        yield Figure("memory of the exporter", scraped.memory / 1e6, "MB", SCRAPE_MB, "the most that it ever had")
    if "forwarding" in only:
        place = site(azure)
        for ratios in measured(place, pairs, seconds, output.say):
            yield from _of_ratios(ratios)


def _of_additions(added: Added, bound: float) -> Iterator[Figure]:
    for percent, limit in ((50, None), (99, bound)):
        yield Figure(f"ADD, {added.how}, p{percent}", added.percentile(percent) * 1000, "ms", limit, f"{len(added.seconds)} pods")


def _of_ratios(ratios: Ratios) -> Iterator[Figure]:
    """Yield ratios per second and per CPU second; the latter has the bound, and is the same where nothing else runs.

    Packets to the internet, each of which is counted, and shaped ones have no bound.
    """
    tcp, internal = ratios.measure.startswith("TCP"), ratios.measure.endswith("between pods")
    bound = KEPT if internal or (tcp and ratios.way != SHAPED) else None
    bare = f"{ratios.bare / 1e9:.2f} Gbit/s" if tcp else f"{ratios.bare / 1e3:,.0f} thousand/s"
    ways: tuple[tuple[str, Callable[[Window], float], float | None], ...] = (
        ("second", lambda window: window.per_second, None),
        ("CPU second", lambda window: window.per_cpu_second, bound),
    )
    for what, of, limit in ways:
        how = f"{len(ratios.pairs)} pairs, ratio {ratios.ratio(of):.3f}; bare {bare}"
        yield Figure(f"{ratios.measure}, {ratios.way}, per {what}", ratios.lower(of), "", limit, how, at_least=True)


if __name__ == "__main__":
    run_command(main, CniError, CommandError, BinariesMissingError, RuntimeError, TimeoutError)
