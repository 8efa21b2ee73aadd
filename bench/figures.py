"""Decides how a measured figure is shown, and whether it keeps its bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One figure: value and bound in unit; bound is None for a figure that only explains others; how says how it was taken.

    at_least says that more is better.
    """

    name: str
    value: float
    unit: str
    bound: float | None
    how: str
    at_least: bool = False

    @property
    def kept(self) -> bool:
        """Whether the value is on the right side of the bound."""
        return self.bound is None or (self.value >= self.bound if self.at_least else self.value <= self.bound)

    def cells(self) -> tuple[str, str, str, str, str]:
        """The figure as a row of a table."""
        verdict = "" if self.bound is None else "kept" if self.kept else "MISSED"
        bound = "" if self.bound is None else f"{'≥ ' if self.at_least else ''}{self.bound:,.6g} {self.unit}"
        return self.name, f"{rounded(self.value)} {self.unit}".strip(), bound.strip(), verdict, self.how


def figures_table(figures: Iterable[Figure]) -> Table:
    """All figures, each beside its bound."""
    table = Table(title="figures", title_justify="left")
    for heading, side in (("figure", "left"), ("value", "right"), ("bound", "right"), ("", "left"), ("how", "left")):
        table.add_column(heading, justify="right" if side == "right" else "left")
    for figure in figures:
        table.add_row(*figure.cells())
    return table


def rounded(value: float) -> str:
    """Three significant digits, thousands separated."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
