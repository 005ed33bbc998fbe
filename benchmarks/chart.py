"""A chart of rates as SVG: a panel for each task and text, a bar for each tool, longest first.

The background is transparent, and the colours follow the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

PANELS = (
    ("train", "english", "cpu", "Training"),
    ("train", "multilingual", "cpu", "Training"),
    ("encode", "english", "cold", "Encoding, cold"),
    ("encode", "multilingual", "cold", "Encoding, cold"),
)
WIDTH, PANEL_WIDTH, LABEL, VALUE = 860, 410, 116, 40  # pixels
BAR, STEP, TITLE, MARGIN = 14, 20, 44, 10

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 13px; }
.note, .value { fill: #59636e; }
.own { fill: #1a7f37; }
.peer { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note, .value { fill: #9198a1; }
  .own { fill: #3fb950; }
  .peer { fill: #6e7681; }
}
"""


def draw(results: dict[str, Any]) -> str:
    """The whole chart."""
    panels = []
    heights = []
    for task, name, kind, title in PANELS:
        rows = results["medians"][task][name]
        size = results["texts"][name]["bytes"] / 1e6
        rates = sorted(((row[f"{kind}_rate"], tool) for tool, row in rows.items()), reverse=True)
        panels.append(list(panel(f"{title}: {name}, {size:.0f} MB", rates)))
        heights.append(TITLE + STEP * len(rates) + MARGIN)
    upper = max(heights[:2])
    height = upper + max(heights[2:])
    places = [(0, 0), (WIDTH - PANEL_WIDTH, 0), (0, upper), (WIDTH - PANEL_WIDTH, upper)]
    body = [
        f'<g transform="translate({x} {y})">\n{"".join(lines)}</g>\n'
        for (x, y), lines in zip(places, panels, strict=True)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">\n'
        "<title>Megabytes of text a CPU second, one thread: more is better</title>\n"
        f"<style>\n{STYLE}</style>\n{''.join(body)}</svg>\n"
    )


def panel(title: str, rates: list[tuple[float, str]]) -> Iterator[str]:
    """The elements of one panel."""
    yield f'<text class="title" x="0" y="18">{escape(title)}</text>\n'
    yield '<text class="note" x="0" y="34">MB per CPU second, one thread</text>\n'
    scale = (PANEL_WIDTH - LABEL - VALUE) / rates[0][0]
    for number, (rate, tool) in enumerate(rates):
        top = TITLE + STEP * number
        width = max(rate * scale, 1)
        kind = "own" if tool == "bytepair" else "peer"
        base = top + BAR - 3
        yield f'<text x="{LABEL - 8}" y="{base}" text-anchor="end">{escape(tool)}</text>\n'
        yield (
            f'<rect class="{kind}" x="{LABEL}" y="{top}" width="{width:.1f}" height="{BAR}" '
            'rx="2"/>\n'
        )
        shown = f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
        yield f'<text class="value" x="{LABEL + width + 6:.1f}" y="{base}">{shown}</text>\n'
