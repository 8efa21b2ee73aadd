"""Drawings of a rotation: unavailable machines against the budget, nodes by state, starts, lost GPU-hours, and time over the bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lifecycle.rotation.model import NodeState
from rehearsal.report.drawing import Drawing, fitted
from rehearsal.report.numbers import number
from rehearsal.rotation.region_rotation import ClusterRotation, RegionRotation
from rehearsal.rotation.simulate import SAMPLE_SECONDS

WIDTH = 960.0
PANEL, HEIGHT = 404.0, 120.0
"""Width and height of the plotting area of a panel."""
LEFT, RIGHT, TOP, BOTTOM = 58.0, 18.0, 46.0, 40.0
FONT = 12.5
POINTS = 240
"""Columns of a panel; each shows one or more rows of the timeline."""
STROKES = 5
HOURS = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168, 336)
ROW = 26.0

Series = Sequence[float]


@dataclass(frozen=True)
class Layer:
    """One area of a stack: its name, its look, and its value at each point."""

    name: str
    look: str
    values: Series


@dataclass(frozen=True)
class RotationFigures:
    """Drawings of a region's rotation: time over the bound, and for each cluster its name and panels."""

    completion: Drawing
    clusters: tuple[tuple[str, Drawing], ...]


def rotation_figures(rotation: RegionRotation) -> RotationFigures:
    """Return the drawings of a region's rotation."""
    return RotationFigures(_completion(rotation), tuple((one.cluster, _cluster(one)) for one in rotation.clusters))


def _completion(rotation: RegionRotation) -> Drawing:
    """Return a bar per cluster, from its start to its end, with its lower bound as a mark."""
    drawing = Drawing(f"Time to rotate the clusters of {rotation.region}, and its lower bound", WIDTH)
    left, right, top = 150.0, 250.0, 30.0
    hours = max(rotation.seconds / 3_600, 0.01)
    scale = (WIDTH - left - right) / hours
    height = top + ROW * len(rotation.clusters) + 4
    for at in _strokes(hours):
        drawing.line("rule", (left + at * scale, top - 8), (left + at * scale, height))
        drawing.text("detail middle", left + at * scale, top - 14, _hours(at))
    for place, one in enumerate(rotation.clusters):
        y = top + ROW * place
        began = (one.outcome.started - rotation.run.started) / 3_600
        took, bound = one.outcome.seconds / 3_600, one.bound.seconds / 3_600
        text = f"{took:.2f} h, bound {bound:.2f} h, {one.ratio:.2f} times"
        title = f"{one.cluster}: {text}; the bound is that of: {one.bound.reason}"
        drawing.text("label", 0, y + 14, fitted(one.cluster, left - 12, FONT), title=one.cluster)
        drawing.rect("cell ours", left + began * scale, y + 3, max(took * scale, 1.5), 14, title=title, mark=("rotation", one.cluster))
        x = left + (began + bound) * scale
        drawing.line("bound", (x, y), (x, y + 20), title=title)
        drawing.text("count", left + max(began + took, began + bound) * scale + 8, y + 14, text)
    drawing.height = height
    return drawing


def _cluster(one: ClusterRotation) -> Drawing:
    """Return the four panels of a cluster."""
    drawing = Drawing(f"Course of the rotation of {one.cluster}", WIDTH)
    columns = one.outcome.timeline.columns
    rows = one.outcome.timeline.rows
    step = max(1, math.ceil(rows / POINTS))
    hours = [place * SAMPLE_SECONDS / 3_600 for place in range(0, rows, step)]

    def level(*names: str) -> Series:
        """Return the largest sum of columns in each point."""
        sums = [sum(columns[name][row] for name in names) for row in range(rows)]
        return [max(sums[at : at + step]) for at in range(0, rows, step)]

    def last(*names: str) -> Series:
        return [sum(columns[name][min(at + step, rows) - 1] for name in names) for at in range(0, rows, step)]

    states = NodeState
    down = (
        Layer("draining", "pool-1", last(states.CORDONED, states.DRAINING, states.DRAINED)),
        Layer("replacing", "pool-6", last(states.REPLACING)),
        Layer("joining", "pool-4", last(states.JOINING)),
        Layer("preflight", "pool-0", last(states.PREFLIGHT)),
    )
    rotating = [sum(values) for values in zip(*(layer.values for layer in down), strict=True)]
    progress = (
        Layer("ready", "pool-2", last(states.READY, states.REMOVED)),
        Layer("in rotation", "pool-0", rotating),
        Layer("failed or blocked", "bar-broken", last(states.FAILED, states.BLOCKED)),
        Layer("pending", "service", last(states.PENDING)),
    )
    starts = columns["starts"]
    per_minute = [sum(starts[at : at + step]) / (min(at + step, rows) - at) * 60 / SAMPLE_SECONDS for at in range(0, rows, step)]
    right = LEFT + PANEL + RIGHT + LEFT
    below = TOP + HEIGHT + BOTTOM
    budget = one.policy.machines
    top = _nice(max(budget, *level("unavailable"), 1))
    panel = _Panel(drawing, LEFT, TOP, hours, top)
    panel.head("Unavailable machines by state", [*((layer.look, layer.name) for layer in down), ("bound", "budget")])
    panel.stack(down)
    panel.level(budget, f"budget: {number(budget)} machines")
    panel = _Panel(drawing, right, TOP, hours, _nice(max(one.nodes, 1)))
    panel.head("Nodes by state", [(layer.look, layer.name) for layer in progress])
    panel.stack(progress)
    panel = _Panel(drawing, LEFT, TOP + below, hours, _nice(max(*rotating, *per_minute, 1)))
    panel.head("Window and starts", [("pool-1", "starts per minute"), ("curve", "nodes in rotation")])
    panel.stack((Layer("starts per minute", "pool-1", per_minute),))
    panel.curve(rotating)
    lost = last("lost_gpu_hours")
    panel = _Panel(drawing, right, TOP + below, hours, _nice(max(*lost, 1)))
    panel.head("GPU-hours lost, since the start", [])
    panel.stack((Layer("GPU-hours lost", "ours", lost),))
    drawing.height = 2 * below
    return drawing


class _Panel:
    """One panel: its axes, and areas and lines over the hours since the start."""

    def __init__(self, drawing: Drawing, x: float, y: float, hours: Series, top: float) -> None:
        self._drawing, self._x, self._y, self._hours, self._top = drawing, x, y, hours, top
        self._scale = PANEL / max(hours[-1] if hours else 0.0, 0.01)
        for share in (0.0, 0.5, 1.0):
            at = y + HEIGHT * (1 - share)
            drawing.line("rule", (x, at), (x + PANEL, at))
            drawing.text("detail end", x - 6, at + 4, number(top * share))
        for hour in _strokes(hours[-1] if hours else 0.0):
            drawing.line("rule", (self._at(hour), y + HEIGHT), (self._at(hour), y + HEIGHT + 4))
            drawing.text("detail middle", self._at(hour), y + HEIGHT + 18, _hours(hour))

    def head(self, title: str, keys: Iterable[tuple[str, str]]) -> None:
        """Add the title, and below it the looks with their names."""
        self._drawing.text("label", self._x, self._y - 30, title)
        x = self._x
        for look, name in keys:
            if look in ("bound", "curve"):
                self._drawing.line(look, (x, self._y - 16), (x + 12, self._y - 16))
            else:
                self._drawing.rect(look, x, self._y - 21, 10, 10)
            self._drawing.text("detail", x + 16, self._y - 12, name)
            x += 30 + 6.4 * len(name)

    def stack(self, layers: Iterable[Layer]) -> None:
        """Add areas, the first at the bottom."""
        base = [0.0] * len(self._hours)
        for layer in layers:
            over = [low + value for low, value in zip(base, layer.values, strict=True)]
            if any(layer.values):
                upper = self._points(over)
                self._drawing.line(layer.look, *upper, *reversed(self._points(base)), title=layer.name)
            base = over

    def curve(self, values: Series) -> None:
        """Add a line."""
        self._drawing.line("curve", *self._points(values))

    def level(self, value: float, title: str) -> None:
        """Add a horizontal line over the whole panel."""
        y = self._height(value)
        self._drawing.line("bound", (self._x, y), (self._x + PANEL, y), title=title)

    def _points(self, values: Series) -> list[tuple[float, float]]:
        return [(self._at(hour), self._height(value)) for hour, value in zip(self._hours, values, strict=True)]

    def _at(self, hour: float) -> float:
        return self._x + hour * self._scale

    def _height(self, value: float) -> float:
        return self._y + HEIGHT * (1 - min(value / self._top, 1.0))


def _nice(value: float) -> float:
    """Return the top of an axis: the next number of 1, 2, 4, 5 or 8 times a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(one * power for one in (1, 2, 4, 5, 8, 10) if one * power >= value)


def _strokes(hours: float) -> list[float]:
    """Return the hours at which an axis has a stroke."""
    step = next((one for one in HOURS if hours / one <= STROKES), HOURS[-1])
    return [place * step for place in range(int(hours // step) + 1)]


def _hours(value: float) -> str:
    return f"{value:g} h"
