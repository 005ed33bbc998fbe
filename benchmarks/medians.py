"""From all runs to what the tables show: medians, rates, and ratios to bytepair's own.

Times are seconds, memory is in bytes, rates are 1,000,000 bytes of text per CPU second. A ratio
says how many times bytepair's CPU seconds a tool needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

Runs = list[dict[str, Any]]
Figures = dict[str, Any]


def added_to(results: dict[str, Any]) -> dict[str, Any]:
    """The results with their medians."""
    return {**results, "medians": of_all(results["runs"], results["texts"])}


def of_all(runs: dict[str, Any], texts: dict[str, Any]) -> dict[str, Any]:
    """Medians by task, text (or what else names a series) and tool (or what else names a row)."""
    return {
        task: {
            name: of_series(
                rows,
                of_encoding if "encode" in (task, name) else of_last_pass,
                texts.get(name, {}).get("bytes"),
            )
            for name, rows in series.items()
        }
        for task, series in runs.items()
    }


def of_series(
    rows: dict[str, Runs], figures_of: Callable[[Runs], Figures], size: int | None
) -> dict[str, Figures]:
    """Medians of each row; for a text of `size` bytes its rate, too."""
    found = {row: figures_of(runs) for row, runs in rows.items()}
    own = found.get("bytepair")
    for figures in found.values():
        for kind in ("cpu", "cold", "warm"):
            if kind in figures and size:
                figures[f"{kind}_rate"] = round(size / figures[kind] / 1e6, 3)
            if kind in figures and own:
                figures[f"{kind}_ratio"] = round(figures[kind] / own[kind], 3)
    return found


def of_last_pass(runs: Runs) -> Figures:
    """Any pass before the last is there to warm up."""
    figures = {kind: _median(run[kind][-1] for run in runs) for kind in ("cpu", "wall")}
    return {"rounds": len(runs), **figures, **_peak(runs)}


def of_encoding(runs: Runs) -> Figures:
    """The first pass in a process is cold, the others are warm."""
    cold = _median(run["cpu"][0] for run in runs)
    warm = _median(median(run["cpu"][1:]) for run in runs)
    return {"rounds": len(runs), "cold": cold, "warm": warm, **_peak(runs)}


def _median(values: Iterable[float]) -> float:
    return round(median(values), 6)


def _peak(runs: Runs) -> Figures:
    return {"peak": int(median(run["peak"] for run in runs))} if "peak" in runs[0] else {}
