"""A sweep as a plot: bytes per token against vocabulary size, a line a pattern, in one SVG file.

It stands alone, and follows the light or dark of whoever shows it. Coordinates have one decimal, so
equal figures are equal bytes on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bytepair.sweeping import Trial

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 500, 20, 350
LINE, ROOM = 18, 48  # a line of text; the columns of a size under the axis

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)

# Told apart by everyone, also by those who do not see all colours: Okabe and Ito's, without yellow.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #333 }
line { stroke: #8886 }
polyline { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }"""


@dataclass(frozen=True)
class _Axes:
    """Vocabulary sizes by their logarithm, to the right; bytes per token, upwards."""

    first: int
    last: int
    low: float
    high: float

    def x(self, size: int) -> float:
        share = 0.5
        if self.last > self.first:
            share = math.log(size / self.first) / math.log(self.last / self.first)
        return LEFT + 24 + share * (RIGHT - LEFT - 48)

    def y(self, value: float) -> float:
        return BOTTOM - (value - self.low) / (self.high - self.low) * (BOTTOM - TOP)


def sweep_svg(trials: Sequence[Trial]) -> str:
    """The plot of trials, on val where there is one, else on train."""
    held_out = all(trial.val_bytes_per_token is not None for trial in trials)
    lines: dict[str, dict[int, float]] = {}
    for trial in trials:
        value = trial.val_bytes_per_token if held_out else trial.train_bytes_per_token
        lines.setdefault(trial.pattern, {})[trial.vocab_size] = value or 0.0
    values = [value for points in lines.values() for value in points.values()]
    step = next(step for step in _STEPS if (max(values) - min(values)) / step <= 6)
    low, high = math.floor(min(values) / step), math.floor(max(values) / step) + 1
    sizes = sorted({trial.requested for trial in trials})
    first = min(trial.vocab_size for trial in trials)  # training may have stopped early
    axes = _Axes(min(first, sizes[0]), sizes[-1], low * step, high * step)
    split = "held-out text" if held_out else "text trained on"
    title = f"Bytes per token of the {split} by vocabulary size: {', '.join(lines)}"
    inside = [
        f'<text x="{LEFT + 8}" y="{TOP - 8}">bytes per token, {split}</text>',
        *_grid(axes, sizes, [number * step for number in range(low, high + 1)]),
        *_lines(lines, axes),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        + "\n".join(inside)
        + "\n</svg>\n"
    )


def _lines(lines: Mapping[str, Mapping[int, float]], axes: _Axes) -> Iterator[str]:
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{axes.x(size):.1f},{axes.y(value):.1f}" for size, value in points.items())
        yield f'<polyline stroke="{colour}" points="{path}"/>'
        for size, value in points.items():
            yield (
                f'<circle fill="{colour}" cx="{axes.x(size):.1f}" cy="{axes.y(value):.1f}" r="4">'
                f"<title>{escape(name)}, {size:,} ids: {value:.4f}</title></circle>"
            )
        at = TOP + LINE * (number + 1)
        yield f'<rect fill="{colour}" x="{RIGHT + 24}" y="{at - 7}" width="12" height="4"/>'
        yield f'<text x="{RIGHT + 42}" y="{at}">{escape(name)}</text>'


def _grid(axes: _Axes, sizes: Sequence[int], values: Sequence[float]) -> Iterator[str]:
    for value in values:
        y = axes.y(value)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>'
    last = -math.inf
    for size in sizes:
        x = axes.x(size)
        if x - last >= ROOM:  # else their numbers would overlap
            yield f'<text x="{x:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{size:,}</text>'
            last = x
    middle = (LEFT + RIGHT) / 2
    yield f'<text x="{middle:g}" y="{HEIGHT - 8}" text-anchor="middle">ids in the vocabulary</text>'
