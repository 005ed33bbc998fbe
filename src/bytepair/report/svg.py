"""Plots as SVG without any script: axes, lines, bars, marks.

Colours come from the page's sheet by class, so that a plot is good in the dark, too. Coordinates
have one decimal: the same bytes on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

WIDTH, HEIGHT = 440, 290
LEFT, RIGHT, TOP, BOTTOM = 46, 400, 14, 244
LINE = 15  # of text


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` to places from `start` to `end`, by logarithms if asked."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = (at - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Round values inside, four to eight of them where there is room."""
        if self.logarithmic:
            return _log_ticks(self.low, self.high)
        step = _step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [count * step for count in range(first, last + 1)]


def horizontal(low: float, high: float, *, logarithmic: bool = False) -> Scale:
    """The scale of an x axis."""
    return Scale(low, high, LEFT, RIGHT, logarithmic)


def vertical(low: float, high: float, *, logarithmic: bool = False) -> Scale:
    """The scale of a y axis."""
    return Scale(low, high, BOTTOM, TOP, logarithmic)


def line(points: Iterable[Point], x: Scale, y: Scale, name: str) -> str:
    """A line in the colour of `name`, which is a split."""
    path = " ".join(f"{x(a):g},{y(b):g}" for a, b in points)
    return f'<polyline class="line {name}" points="{path}"/>'


def dot(point: Point, x: Scale, y: Scale, name: str) -> str:
    """A dot in the colour of `name`."""
    return f'<circle class="dot {name}" cx="{x(point[0]):g}" cy="{y(point[1]):g}" r="4"/>'


def bars(
    heights: Sequence[float], x: Scale, y: Scale, name: str, *, place: int, places: int
) -> str:
    """Bars at 1, 2, 3, ...; `place` of `places` that share the room beside each other."""
    room = (x.end - x.start) / len(heights)
    width = 0.8 * room / places
    parts = []
    for index, height in enumerate(heights):
        top = y(height)
        left = x.start + index * room + 0.1 * room + place * width
        parts.append(
            f'<rect x="{left:.1f}" y="{top:g}" width="{width:.1f}" height="{y.start - top:.1f}"/>'
        )
    return f'<g class="bar {name}">{"".join(parts)}</g>'


def rule(value: float, x: Scale, label: str) -> str:
    """An upright line at a value of x, with a word beside it."""
    at = x(value)
    side, shift = ("end", -5) if at > (LEFT + RIGHT) / 2 else ("start", 5)
    return (
        f'<line class="rule" x1="{at:g}" y1="{TOP}" x2="{at:g}" y2="{BOTTOM}"/>'
        f'<text class="mark" x="{at + shift:g}" y="{BOTTOM - 8}" text-anchor="{side}">'
        f"{escape(label)}</text>"
    )


def tag(point: Point, x: Scale, y: Scale, name: str, *, shift: float = 0) -> str:
    """The name of a line in its colour, to the right of a point of it and so much further down."""
    at, height = x(point[0]) + 6, y(point[1]) + 4 + shift
    return f'<text class="tag {name}" x="{at:g}" y="{height:g}">{name}</text>'


def cursor() -> str:
    """An upright line that page.js moves along x; hidden until it does."""
    return f'<line class="cursor" y1="{TOP}" y2="{BOTTOM}" visibility="hidden"/>'


def plot(
    key: str,
    title: str,
    x: Scale,
    y: Scale,
    marks: Iterable[str],
    *,
    x_label: str,
    y_label: str,
    x_ticks: Sequence[tuple[float, str]] | None = None,
) -> str:
    """A whole plot; `title` is what a screen reader says of it."""
    across = [(x(tick), _short(tick)) for tick in x.ticks()] if x_ticks is None else x_ticks
    parts = [
        f'<line class="grid" x1="{LEFT}" y1="{y(tick):g}" x2="{RIGHT}" y2="{y(tick):g}"/>'
        f'<text x="{LEFT - 7}" y="{y(tick) + 4:g}" text-anchor="end">{_short(tick)}</text>'
        for tick in y.ticks()
    ]
    parts += [
        f'<text x="{at:g}" y="{BOTTOM + 18}" text-anchor="middle">{label}</text>'
        for at, label in across
    ]
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{BOTTOM}" x2="{RIGHT}" y2="{BOTTOM}"/>')
    parts.append(
        f'<text class="name" x="{(LEFT + RIGHT) / 2:g}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
    )
    inside = "\n".join((*parts, *marks))
    return (
        f'<figure class="plot"><p class="y-name" aria-hidden="true">{escape(y_label)}</p>'
        f'<svg id="{key}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-title">'
        f'<title id="{key}-title">{escape(title)}</title>\n{inside}\n</svg></figure>'
    )


def sample(last: int, points: int, *, keep: Iterable[int] = ()) -> list[int]:
    """About so many indices from 0 to `last`, evenly by the logarithm, and those to keep."""
    spread = {round((last + 1) ** (step / points)) - 1 for step in range(points + 1)}
    return sorted({0, last, *keep, *spread})


def _step(span: float) -> float:
    """The distance of ticks: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(span / 4)) if span > 0 else 1.0
    return next(round(m * power, 10) for m in (1, 2, 5, 10) if span / (m * power) <= 7)


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of two over a few doublings, else powers of ten."""
    if high / low <= 512 and low >= 1:
        first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
        doubled = [2.0**power for power in range(first, last + 1)]
        between = [1.5 * tick for tick in doubled if 1.5 * tick <= high]
        return sorted(doubled + between) if len(doubled) < 4 else doubled
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def _short(value: float) -> str:
    """A tick's label: `1,024`, `0.5`, `10k`."""
    if value >= 10_000 and value % 1024 == 0:
        return f"{value / 1024:,.0f}k"  # powers of two, as people call them
    if value >= 10_000:
        thousands = value / 1000
        return f"{thousands:,.0f}k" if thousands < 1000 else f"{thousands / 1000:g}M"
    return f"{value:,.10g}"
