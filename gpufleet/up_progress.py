"""How an update of the embedded Azure shows that it goes on: one live line on a terminal, a line per stack elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

STEP = 10
"""Resources between two changes of the live line."""


@contextmanager
def shown(console: Console, verb: str) -> Iterator[Callable[[str, int, float], None]]:
    """What to tell of the stack at work, of its resources that are there, and of the seconds of Azure's time gone by."""
    if not console.is_terminal:
        yield lambda stack, count, _seconds: None if count else console.print(f"{verb}: {stack}", markup=False)
        return
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task(verb, total=None)

        def tell(stack: str, count: int, seconds: float) -> None:
            if count % STEP == 0:
                bars.update(task, description=f"{verb} {stack}: {count:,} resources, {span(seconds)} of Azure's time")

        yield tell


def span(seconds: float) -> str:
    """A time for a person: seconds up to two minutes, then minutes, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
