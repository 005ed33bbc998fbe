"""A sweep as a plot: bytes per token against vocabulary size, a line a pattern, in one SVG file.

It stands alone, and follows the light or dark of whoever shows it. Coordinates have one decimal, so
equal figures are equal bytes on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from bytepair.sweeping import Trial

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 500, 20, 350
LINE = 18  # of text

# Told apart by everyone, also by those who do not see all colours: Okabe and Ito's, without yellow.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #333 }
.grid { stroke: #8884 } .axis { stroke: #888 }
polyline { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }"""


def sweep_svg(trials: Sequence[Trial]) -> str:
    """The plot of trials, on val where there is one, else on train."""
    held_out = all(trial.val_bytes_per_token is not None for trial in trials)
    lines: dict[str, list[tuple[int, float]]] = {}
    for trial in trials:
        value = trial.val_bytes_per_token if held_out else trial.train_bytes_per_token
        points = lines.setdefault(trial.pattern, [])
        if (trial.vocab_size, value) not in points:  # where training stopped early
            points.append((trial.vocab_size, value or 0.0))
    sizes = sorted({size for points in lines.values() for size, _ in points})
    top = 1.05 * max(value for points in lines.values() for _, value in points)
    split = "held-out text" if held_out else "text trained on"
    title = f"Bytes per token of the {split} by vocabulary size: " + ", ".join(lines)
    inside = "\n".join([*_axes(sizes, top, split), *_lines(lines, sizes, top)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n{inside}\n</svg>\n"
    )


def _lines(
    lines: dict[str, list[tuple[int, float]]], sizes: Sequence[int], top: float
) -> Iterator[str]:
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [(_x(size, sizes), _y(value, top)) for size, value in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline stroke="{colour}" points="{path}"/>'
        for (x, y), (size, value) in zip(places, points, strict=True):
            yield (
                f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
                f"<title>{escape(name)}, {size:,} ids: {value:.4f}</title></circle>"
            )
        at = TOP + LINE * (number + 1)
        yield f'<rect fill="{colour}" x="{RIGHT + 24}" y="{at - 9}" width="12" height="4"/>'
        yield f'<text x="{RIGHT + 42}" y="{at}">{escape(name)}</text>'


def _axes(sizes: Sequence[int], top: float, split: str) -> Iterator[str]:
    step = next(step for step in (0.25, 0.5, 1, 2, 5, 10, 100, math.inf) if top / step <= 8)
    for number in range(int(top / step) + 1):
        y = _y(number * step, top)
        kind = "grid" if number else "axis"
        yield f'<line class="{kind}" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number * step:g}</text>'
    last = -math.inf
    for size in sizes:
        x = _x(size, sizes)
        if x - last >= 48:  # else their numbers would overlap
            yield f'<text x="{x:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{size:,}</text>'
            last = x
    middle = (LEFT + RIGHT) / 2
    yield f'<text x="{middle:g}" y="{HEIGHT - 8}" text-anchor="middle">ids in the vocabulary</text>'
    yield f'<text x="{LEFT + 8}" y="{TOP - 6}">bytes per token, {split}</text>'


def _x(size: int, sizes: Sequence[int]) -> float:
    if sizes[0] == sizes[-1]:
        return (LEFT + RIGHT) / 2
    share = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
    return LEFT + 24 + share * (RIGHT - LEFT - 48)


def _y(value: float, top: float) -> float:
    return BOTTOM - value / top * (BOTTOM - TOP)
