"""The sections made of plots: vocabulary sizes, lengths of tokens, their frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair.report import svg
from bytepair.report.experiments import Curve
from bytepair.report.facts import Facts, SplitFacts
from bytepair.report.markup import chip, counted, listed, number, paragraphs, percent

Int64s = NDArray[np.int64]

POINTS = 96
LONGEST_BAR = 16
DRAWN = ("train", "val", "text")  # two lines tell enough; the test split stands in tables


def sizes(facts: Facts) -> tuple[str, dict[str, Any]]:
    """Bytes per token against vocabulary size, and what page.js needs to move a mark along it."""
    merges, specials = len(facts.tokenizer.merges), len(facts.tokenizer.special_tokens)
    curves = [curve for curve in facts.curves if curve.split in DRAWN]
    last = len(curves[0].bytes_per_token) - 1
    steps = sorted({*svg.sample(last, POINTS, keep=(merges,)), *range(0, last, max(1, last // 48))})
    ids = [256 + specials + step for step in steps]
    x = svg.horizontal(256, max(ids[-1], 512), logarithmic=True)
    slider = (
        '<p class="slider"><label for="size">Try another size</label>'
        f'<input id="size" type="range" min="0" max="{len(steps) - 1}" '
        f'value="{steps.index(merges)}"><output id="size-says" for="size"></output></p>'
    )
    data = {
        "ids": ids,
        "x": [x(size) for size in ids],
        "curves": {c.split: [round(c.bytes_per_token[step], 6) for step in steps] for c in curves},
    }
    plot = _sizes_plot(curves, steps, ids, x, chosen=facts.tokenizer.vocab_size)
    return plot + slider + paragraphs(*_what_sizes_say(facts, curves)), data


def _sizes_plot(
    curves: Sequence[Curve], steps: Sequence[int], ids: Sequence[int], x: svg.Scale, *, chosen: int
) -> str:
    merges = steps[ids.index(chosen)]
    lowest = min(curve.bytes_per_token[0] for curve in curves)
    y = svg.vertical(min(1.0, lowest), 1.04 * max(max(c.bytes_per_token) for c in curves))
    marks = [svg.rule(chosen, x, f"{number(chosen)} chosen")]
    upper = max(curves, key=lambda curve: curve.bytes_per_token[-1])
    ends = sorted(y(curve.bytes_per_token[-1]) for curve in curves)
    room = max(0.0, svg.LINE - (ends[-1] - ends[0]))
    for curve in curves:
        points = [
            (size, curve.bytes_per_token[step]) for size, step in zip(ids, steps, strict=True)
        ]
        shift = 0 if curve is upper else room
        marks.append(svg.line(points, x, y, curve.split))
        marks.append(svg.dot((chosen, curve.bytes_per_token[merges]), x, y, curve.split))
        marks.append(svg.tag(points[-1], x, y, curve.split, shift=shift))
    marks.append(svg.cursor())
    return svg.plot(
        "sizes-plot",
        f"Bytes per token against vocabulary size, from {number(ids[0])} to {number(ids[-1])} ids; "
        + listed([f"{c.split} {number(c.bytes_per_token[merges], 2)}" for c in curves])
        + f" at the {number(chosen)} chosen",
        x,
        y,
        marks,
        x_label="ids in the vocabulary",
        y_label="bytes per token",
    )


def _what_sizes_say(facts: Facts, curves: Sequence[Curve]) -> list[str]:
    merges = len(facts.tokenizer.merges)
    held = curves[-1].bytes_per_token
    said = [
        (
            "Merges make the text shorter, late ones less than early ones. The curve is exact at "
            "every size: a tokenizer with fewer merges is this one, stopped earlier."
        )
    ]
    if merges >= 8:
        half = merges // 2
        said[0] += (
            f" The first {number(half)} merges took {curves[-1].split} from "
            f"{number(held[0], 2)} to {number(held[half], 2)} bytes per token, the other "
            f"{number(merges - half)} to {number(held[merges], 2)}."
        )
    if len(held) - 1 > merges:
        twice = min(2 * merges, len(held) - 1)
        gain = held[twice] / held[merges] - 1
        said.append(
            f"To the right of the mark training was simply carried on. {number(twice)} merges "
            f"instead of {number(merges)} would give {number(held[twice], 2)} bytes per token on "
            f"{curves[-1].split}: sequences {percent(gain / (1 + gain))} shorter, for "
            f"{number(twice - merges)} more rows in the model’s embedding."
        )
    if len(curves) == 2:
        seen = curves[0].bytes_per_token
        here, there = (held[at] / seen[at] - 1 for at in (merges, len(held) - 1))
        said.append(
            f"Where val falls behind train, merges are learned that only train has. Here val is "
            f"{percent(abs(here))} {'above' if here >= 0 else 'below'} train at the chosen size"
            + (
                f", and {percent(abs(there))} {'above' if there >= 0 else 'below'} at the largest."
                if len(held) - 1 > merges
                else "."
            )
        )
    return said


def lengths(facts: Facts) -> str:
    """How long the tokens of the vocabulary are, and those of running text."""
    split = facts.held_out
    learned = 256 + len(facts.tokenizer.merges)
    sizes_ = np.array([len(token) for token in facts.tokenizer.vocab[:learned]])
    counts = split.counts[:learned]
    total = max(int(counts.sum()), 1)
    mean, used = float(sizes_.mean()), float(counts @ sizes_ / total)
    key = (
        '<p class="key"><span class="vocab">in the vocabulary</span> '
        f'<span class="{split.name}">in the text of {split.name}</span></p>'
    )
    said = "the text leans on the longer ones."
    if used < mean:
        said = "short ones are used most, so long tokens shorten a text less than they promise."
    plot = _lengths_plot(sizes_, {"vocab": np.ones(learned), split.name: counts})
    return (
        plot
        + key
        + paragraphs(
            f"The tokens of the vocabulary have {number(mean, 2)} bytes on average, those of "
            f"running text {number(used, 2)}: {said} The 256 raw bytes are "
            f"{percent(256 / learned)} of the vocabulary and "
            f"{percent(int(counts[:256].sum()) / total)} of the tokens in the text."
        )
    )


def _lengths_plot(lengths_: Int64s, weights: Mapping[str, NDArray[Any]]) -> str:
    """Bars of the share of tokens of each length, beside each other for each kind of weight."""
    longest = min(int(lengths_.max()), LONGEST_BAR)
    at = np.minimum(lengths_, longest)
    shares = {
        name: 100 * np.bincount(at, weight, minlength=longest + 1)[1:] / max(weight.sum(), 1)
        for name, weight in weights.items()
    }
    top = max(float(share.max()) for share in shares.values())
    x, y = svg.horizontal(0, longest), svg.vertical(0, 1.05 * top)
    ticks = [
        (x(size - 0.5), str(size))
        for size in range(1, longest + 1)
        if longest <= 10 or (longest - size) % 2 == 0
    ]
    if longest < int(lengths_.max()):
        ticks[-1] = (ticks[-1][0], f"{longest}+")
    return svg.plot(
        "lengths-plot",
        f"Length of tokens: the share that has 1 to {longest} bytes, of {listed(list(shares))}",
        x,
        y,
        [
            svg.bars(share.tolist(), x, y, name, place=place, places=len(shares))
            for place, (name, share) in enumerate(shares.items())
        ],
        x_label="bytes in a token",
        y_label="% of tokens",
        x_ticks=ticks,
    )


def frequencies(facts: Facts) -> str:
    """Rank against frequency, both by logarithms."""
    splits = [split for split in facts.splits if split.name in DRAWN and len(split.ids)]
    sorted_counts = {split.name: _descending(split.counts) for split in splits}
    if not splits:
        return paragraphs("There is no text to count tokens in.")
    ranks = max(map(len, sorted_counts.values()))
    most = max(int(counts[0]) for counts in sorted_counts.values())
    x = svg.horizontal(1, max(ranks, 2), logarithmic=True)
    y = svg.vertical(1, 1.3 * max(most, 2), logarithmic=True)
    marks = []
    for split in splits:
        counts = sorted_counts[split.name]
        steps = svg.sample(len(counts) - 1, POINTS)
        marks.append(svg.line([(s + 1, int(counts[s])) for s in steps], x, y, split.name))
        third = max(1, int(len(counts) ** 0.4))  # in the left part, where lines are apart
        marks.append(svg.tag((third, int(counts[third - 1])), x, y, split.name, shift=4 - svg.LINE))
    plot = svg.plot(
        "frequencies-plot",
        "Rank and frequency of tokens, both on logarithmic scales, "
        f"from the most frequent one, which occurs {number(most)} times",
        x,
        y,
        marks,
        x_label="rank by frequency",
        y_label="occurrences",
        x_ticks=[(x(10.0**p), number(10**p)) for p in range(6) if 10**p <= ranks],
    )
    return plot + paragraphs(*_what_frequencies_say(facts, facts.held_out))


def _what_frequencies_say(facts: Facts, split: SplitFacts) -> list[str]:
    total = int(split.counts.sum())
    order = np.argsort(-split.counts, kind="stable")
    top = [int(token) for token in order[:10] if split.counts[token]]
    if not total:
        return []
    share = int(split.counts[top].sum()) / total
    vocabulary = facts.tokenizer.vocab
    efficiency = split.measures["renyi_efficiency"]
    return [
        (
            "Tokens sorted by how often they occur. Zipf’s law, which words follow, would be a "
            "straight line. BPE flattens its head, since a frequent pair becomes a token of its "
            "own, and cuts off its tail, since what is rare gets no token."
        ),
        f"The {counted(len(top), 'most frequent token')} make up {percent(share)} of "
        f"{split.name}: " + " ".join(chip(vocabulary[token], token) for token in top),
        (
            f"Rényi efficiency puts the whole line into one number, {number(efficiency, 3)} here: "
            "1 would be a level line."
        ),
    ]


def _descending(counts: Int64s) -> Int64s:
    used = counts[counts > 0]
    return np.sort(used)[::-1]
