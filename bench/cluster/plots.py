"""Plots of a run: nodes and pods over time, and CPU and memory by process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Json = Mapping[str, Any]
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777", "#000000", "#8c510a", "#5e3c99")
"""Colours that people with colour blindness tell apart: https://jfly.uni-koeln.de/color/"""
STYLES = {"ours": "-", "bare": "--"}
WINDOW_SECONDS = 3.0
"""CPU is shown as the mean over this time: a sample a second counts ticks of 10 ms."""
GIB = 2**30


def draw(document: Json, path: Path) -> tuple[Path, ...]:
    """Write a run's picture as SVG and PNG beside each other, and return both paths."""
    clusters = document["clusters"]
    figure = Figure(figsize=(13, 13), layout="constrained")
    rows: Any = figure.subfigures(3, 1, height_ratios=(5, 4, 4))
    top, middle, bottom = rows
    machine = document["machine"]
    figure.suptitle(
        f"{document['nodes']:,} nodes and as many whole-node pods, setting {document['setting']}, on {machine['cores']} cores", fontsize=14
    )
    _progress(top, document["nodes"], clusters)
    colors = _colors(clusters)
    _by_process(middle, clusters, colors, "CPU of each process", "cores", _cores)
    _by_process(bottom, clusters, colors, "Memory of each process", "resident, GiB", _memory)
    written = tuple(path.with_suffix(suffix) for suffix in (".svg", ".png"))
    for one in written:
        figure.savefig(one, dpi=110)
    return written


def _progress(figure: Any, nodes: int, clusters: Sequence[Json]) -> None:
    """Plot the number of Ready nodes and Running pods over the time since each phase began."""
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, moments, began, took, title in (
        (left, "ready", "join_at", "join", "Nodes Ready"),
        (right, "running", "pods_at", "pods", "Pods Running, once all nodes are Ready"),
    ):
        for cluster, color in zip(clusters, COLORS, strict=False):
            times = [0.0, *(at - cluster[began] for at in cluster[moments])]
            label = f"{cluster['name']}: all after {cluster[took]:.1f} s"
            axes.plot(times, range(len(times)), STYLES[cluster["name"]], color=color, label=label, linewidth=2)
        _plain(axes, title, "seconds since the phase began")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    left.set_ylim(0, nodes * 1.04)
    left.set_ylabel("number")


def _by_process(figure: Any, clusters: Sequence[Json], colors: Mapping[str, str], title: str, unit: str, series: Any) -> None:
    """Plot a line for each process, with the two clusters side by side on one scale."""
    panels: Sequence[Axes] = figure.subplots(1, len(clusters), sharey=True, squeeze=False)[0]
    for axes, cluster in zip(panels, clusters, strict=True):
        for name, samples in cluster["samples"].items():
            times, values = series(samples)
            axes.plot([at - cluster["join_at"] for at in times], values, color=colors[name], label=name, linewidth=1.4)
        for moment, text in ((cluster["joined_at"], "all nodes Ready"), (cluster["ended_at"], "all pods Running")):
            axes.axvline(moment - cluster["join_at"], color="#999999", linewidth=0.8)
            axes.annotate(
                text,
                (moment - cluster["join_at"], 1),
                xycoords=("data", "axes fraction"),
                xytext=(-3, -3),
                textcoords="offset points",
                rotation=90,
                ha="right",
                va="top",
                fontsize=8,
                color="#555555",
            )
        _plain(axes, f"{title}, {cluster['name']}", "seconds since the join began")
    panels[0].set_ylabel(unit)
    panels[0].set_ylim(bottom=0)
    handles = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside right center", frameon=False)


def _plain(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(below)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _colors(clusters: Sequence[Json]) -> dict[str, str]:
    names = dict.fromkeys(name for cluster in clusters for name in cluster["samples"])
    return dict(zip(names, cycle(COLORS), strict=False))


def _cores(samples: Sequence[tuple[float, float, int]]) -> tuple[list[float], list[float]]:
    """Return times and the mean number of used cores in a window before each."""
    times, values, first = [], [], 0
    for last, (at, cpu, _) in enumerate(samples):
        while samples[first][0] < at - WINDOW_SECONDS and first < last - 1:
            first += 1
        if last:
            earlier = samples[first]
            times.append(at)
            values.append(max(0.0, cpu - earlier[1]) / (at - earlier[0]))
    return times, values


def _memory(samples: Sequence[tuple[float, float, int]]) -> tuple[list[float], list[float]]:
    return [one[0] for one in samples], [one[2] / GIB for one in samples]
