"""Drawing of the report: shapes with a position, a look and a title, which the template renders as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field

CHARACTER_WIDTH = 0.53
"""Width of an average character as a share of the font size, for texts that must fit a width."""


@dataclass(frozen=True)
class Shape:
    """One SVG element: kind "rect", "circle", "path" or "text".

    x and y are a rectangle's upper left corner, a circle's centre or a text's start on its base line; width and height belong to
    rectangles, radius to circles (and to a rectangle's corners), data to paths, spans (look and text of each) to texts. look names CSS
    classes; title is shown on hovering and read out by screen readers; mark is a data attribute, name and value.
    """

    kind: str
    look: str
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    radius: float = 0.0
    data: str = ""
    spans: tuple[tuple[str, str], ...] = ()
    title: str = ""
    mark: tuple[str, str] | None = None


@dataclass
class Drawing:
    """A drawing to which shapes are added; width and height are in the units of its shapes, title is for screen readers."""

    title: str
    width: float
    height: float = 0.0
    shapes: list[Shape] = field(default_factory=list)

    def rect(
        self,
        look: str,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        radius: float = 0.0,
        title: str = "",
        mark: tuple[str, str] | None = None,
    ) -> None:
        """Add a rectangle."""
        self.shapes.append(Shape("rect", look, _short(x), _short(y), _short(width), _short(height), radius, title=title, mark=mark))

    def circle(self, look: str, x: float, y: float, radius: float, *, title: str = "", mark: tuple[str, str] | None = None) -> None:
        """Add a circle."""
        self.shapes.append(Shape("circle", look, _short(x), _short(y), radius=radius, title=title, mark=mark))

    def line(self, look: str, *points: tuple[float, float], title: str = "") -> None:
        """Add a line through points."""
        data = "M" + " L".join(f"{_short(x):g} {_short(y):g}" for x, y in points)
        self.shapes.append(Shape("path", look, data=data, title=title))

    def text(self, look: str, x: float, y: float, text: str, *, title: str = "") -> None:
        """Add one line of text."""
        self.shapes.append(Shape("text", look, _short(x), _short(y), spans=(("", text),), title=title))

    def spans(self, x: float, y: float, *spans: tuple[str, str]) -> None:
        """Add one line of several texts, one after the other, each with its look."""
        self.shapes.append(Shape("text", "", _short(x), _short(y), spans=spans))


def fitted(text: str, width: float, size: float) -> str:
    """Return a text that fits a width at a font size; a longer one is cut and ends with an ellipsis."""
    most = int(width / (size * CHARACTER_WIDTH))
    return text if len(text) <= most else f"{text[: max(most - 1, 1)]}…"


def _short(value: float) -> float:
    """Round to one decimal, which is precise enough and makes the page small."""
    return round(value, 1)
