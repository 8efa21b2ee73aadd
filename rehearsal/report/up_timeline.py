"""Drawing of a local up: the working time of each part of a region, in Azure's time."""

from __future__ import annotations

from components.plan.model import RegionPlan
from rehearsal.local_up.timeline import Timeline, TimelineBar
from rehearsal.report.drawing import Drawing, fitted
from rehearsal.report.palette import pool_looks

WIDTH = 960.0
LEFT, RIGHT = 188.0, 92.0
LINE, BAR = 18.0, 11.0
FONT = 12.5
STEPS = (60, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
"""Seconds between two strokes of the time axis: the first step with at most MOST_STROKES strokes."""
MOST_STROKES = 9
POOL = "pool-"


def up_timeline(plan: RegionPlan, timeline: Timeline) -> Drawing:
    """Return the timeline of an up: a line for each part of the base stack and of each cluster."""
    drawing = Drawing(f"Working time of each part of {plan.name} during gpufleet up", WIDTH)
    scale = (WIDTH - LEFT - RIGHT) / max(timeline.seconds, 1.0)
    height = 24 + sum(LINE * (len(row.bars) + 1) + 6 for row in timeline.rows)
    _axis(drawing, timeline.seconds, scale, height)
    looks = pool_looks(plan)
    y = 24.0
    for row in timeline.rows:
        drawing.text("label", 0, y + 12, fitted(row.name, LEFT - 10, FONT), title=row.name)
        y += LINE
        for bar in row.bars:
            _bar(drawing, f"{row.name}: ", bar, y, scale, looks)
            y += LINE
        y += 6
    drawing.height = height
    return drawing


def clock(seconds: float) -> str:
    """Return a time since the start, in hours and minutes."""
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


def _axis(drawing: Drawing, seconds: float, scale: float, height: float) -> None:
    step = next((one for one in STEPS if seconds / one <= MOST_STROKES), STEPS[-1])
    drawing.text("detail end", LEFT - 22, 12, "hours:minutes")
    for stroke in range(int(seconds // step) + 1):
        x = LEFT + stroke * step * scale
        drawing.line("zoom", (x, 18), (x, height))
        drawing.text("detail middle", x, 12, clock(stroke * step))


def _bar(drawing: Drawing, where: str, bar: TimelineBar, y: float, scale: float, looks: dict[str, str]) -> None:
    pool = bar.part.removeprefix(POOL)
    look = f"cell {looks[pool]}" if bar.part.startswith(POOL) and pool in looks else "cell ours"
    x, width = LEFT + bar.began * scale, max((bar.ended - bar.began) * scale, 1.5)
    resources = f"{bar.resources:,} resource{'' if bar.resources == 1 else 's'}"
    title = f"{where}{bar.part}: {resources}, from {clock(bar.began)} to {clock(bar.ended)}"
    drawing.text("detail end", LEFT - 10, y + 10, fitted(bar.part, LEFT - 22, FONT), title=title)
    drawing.rect(look, x, y, width, BAR, title=title, mark=("up", f"{where}{bar.part}"))
    drawing.text("detail halo", x + width + 6, y + 10, f"{bar.resources:,}")
