"""The sections of the report but for its plots: each returns HTML that says what a figure means."""

from __future__ import annotations

from html import escape

import numpy as np

from bytepair.intrinsic import merge_uses
from bytepair.report.facts import Facts
from bytepair.report.markup import (
    chip,
    code,
    counted,
    definitions,
    listed,
    number,
    paragraphs,
    percent,
    ranges,
    table,
    text_of,
    visible,
)

PAGE_BYTES = 1_900
SAME = 0.005  # a smaller difference is not worth a word


def at_a_glance(facts: Facts) -> str:
    """The figures of each split, and what they say."""
    rows = [
        (
            split.name,
            number(len(split.documents)),
            number(split.size),
            number(len(split.ids)),
            number(split.bytes_per_token, 4),
            number(split.measures["fertility"], 3),
            number(split.measures["renyi_efficiency"], 3),
            percent(split.measures["share_used"]),
        )
        for split in facts.splits
    ]
    header = (
        "split", "documents", "bytes", "tokens", "bytes per token", "tokens per word",
        "Rényi efficiency", "vocabulary used",
    )  # fmt: skip
    return table("Figures by split", header, rows) + paragraphs(
        "Bytes per token say how much text one id stands for. Higher means shorter sequences, so "
        "more text in the same context for the same work. " + _train_and_held_out(facts),
        _bits(facts),
        "The test split is not shown: <code>report.test</code> is false in params.yaml."
        if facts.hides_test
        else "",
    )


def identity(facts: Facts) -> str:
    """What the tokenizer is, to the last byte."""
    tokenizer = facts.tokenizer
    regex = tokenizer.pattern.regex
    specials = [f"{code(text)} {number}" for text, number in tokenizer.special_tokens.items()]
    return definitions(
        [
            (
                "pattern",
                "none: a text is one chunk, and tokens may reach over words"
                if regex is None
                else f"{escape(facts.pattern)}, {code(regex)}",
            ),
            ("special tokens", listed(specials) or "none"),
            ("hash of bpe.json", code(tokenizer.sha256)),
            ("hash of the text trained on", code(tokenizer.train_sha256 or "not known")),
        ]
    )


def key_figures(facts: Facts) -> str:
    """Three or four numbers to remember."""
    split = facts.held_out
    figures = [
        (number(facts.tokenizer.vocab_size), "ids", _parts(facts)),
        (
            number(split.bytes_per_token, 3),
            f"bytes per token on {split.name}",
            "more makes sequences shorter",
        ),
    ]
    if facts.cost is not None and facts.cost.value is not None:
        interval = ""
        if facts.cost.low is not None:
            interval = f"{number(facts.cost.low, 2)} to {number(facts.cost.high, 2)}, "
        figures.append(
            (number(facts.cost.value, 3), "bits per byte on val", f"{interval}lower is better")
        )
    figures.append(
        (
            percent(split.measures["share_used"], 0),
            f"of the vocabulary used on {split.name}",
            counted(split.measures["seen_fewer_than"][0]["tokens"], "id", "ids") + " never occur",
        )
    )
    return '<ul class="key-figures">' + "".join(
        f"<li><strong>{value}</strong> <span>{what}</span> <small>{more}</small></li>"
        for value, what, more in figures
    ) + "</ul>"  # fmt: skip


def page_of_text(facts: Facts) -> str:
    """The beginning of the held-out text, each token an option of a list to walk through."""
    split, vocabulary = facts.held_out, facts.tokenizer.vocab
    shown, size = [], 0
    for token in split.ids[:PAGE_BYTES].tolist():
        size += len(vocabulary[token])
        shown.append(token)
        ended = vocabulary[token][-1:] in (b"\n", b" ", b".")
        if size >= (PAGE_BYTES if ended else PAGE_BYTES + 100):
            break
    options = "".join(
        f'<span role="option" aria-selected="false" id="t{place}" data-i="{token}"'
        f"{_name(vocabulary[token])}>{_readable(vocabulary[token])}</span>"
        for place, token in enumerate(shown)
    )
    document = split.documents[0].name if split.documents else ""
    where = f"{split.name}, {document}" if document else f"the {split.name}"
    fresh = ", which training has not seen" if split.name in ("val", "test") else ""
    return paragraphs(
        f"The beginning of {escape(where)}{fresh}: {number(size)} bytes in {number(len(shown))} "
        "tokens. Colours only tell neighbours apart. What is common is whole; what is rare falls "
        "into pieces."
    ) + (
        f'<div id="text" role="listbox" tabindex="0" aria-label="The beginning of '
        f'{escape(where)} in tokens; arrow keys go from one to the next">{options}</div>\n'
        '<div id="token" class="readout"><p>Point at a token, or go through them with the arrow '
        "keys.</p></div>"
    )


def default_word(facts: Facts) -> str:
    """A word to build at first: the longest of the page, with the space before it."""
    split = facts.held_out
    data = facts.tokenizer.decode_bytes(split.ids[:4_000])
    words = [word for word in data.decode("utf-8", "replace").split() if word.isalpha()]
    return " " + max(
        words, key=lambda word: (min(len(word), 16), -words.index(word)), default="low"
    )


def use(facts: Facts) -> str:
    """How much of the vocabulary is used, what is never seen, what is only a step."""
    thresholds = [entry["times"] for entry in facts.splits[0].measures["seen_fewer_than"]]
    header = (
        "split",
        "ids used",
        *(f"fewer than {n}" if n > 1 else "never seen" for n in thresholds),
    )
    rows = [
        (
            split.name,
            percent(split.measures["share_used"]),
            *(number(entry["tokens"]) for entry in split.measures["seen_fewer_than"]),
        )
        for split in facts.splits
    ]
    return table("Ids by how often they are seen", header, rows) + paragraphs(
        *_dead(facts), _unseen_later(facts), _steps(facts)
    )


def _parts(facts: Facts) -> str:
    specials = len(facts.tokenizer.special_tokens)
    more = f", {number(specials)} special" if specials else ""
    return f"256 bytes, {counted(len(facts.tokenizer.merges), 'merge')}{more}"


def _train_and_held_out(facts: Facts) -> str:
    train, held = facts.trained_on, facts.held_out
    if train is None or held is train or not (train.bytes_per_token and held.bytes_per_token):
        return ""
    gap = held.bytes_per_token / train.bytes_per_token - 1
    if abs(gap) < SAME:
        return f"On {held.name} they are as on train: what was learned holds for new text."
    if gap > 0:
        return (
            f"On {held.name} they are {percent(gap)} above train, so what was learned holds for "
            f"new text. It does not mean that {held.name} was learned better: texts differ, as "
            "the figures by document show."
        )
    return (
        f"On {held.name} they are {percent(-gap)} below train: some merges fit the text trained "
        "on and little else. More text to train on, or fewer merges, brings the two together."
    )


def _bits(facts: Facts) -> str:
    if facts.cost is None or facts.cost.value is None:
        return ""
    interval = ""
    if facts.cost.low is not None:
        interval = (
            f", with a 95 % interval of {number(facts.cost.low, 3)} to {number(facts.cost.high, 3)}"
        )
    return (
        f"A small language model trained on these tokens pays {number(facts.cost.value, 4)} bits "
        f"for each byte of val{interval}. It is the one figure that rewards tokens for being easy "
        "to predict, and it can be compared between tokenizers of one corpus only."
    )


def _readable(token: bytes) -> str:
    """A token inside running text: white space stays what it is, and line ends are marked."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return f"<b>{escape(visible(text_of(token)))}</b>"
    lines = [visible(line).replace("␣", " ").replace("⇥", "\t") for line in text.split("\n")]
    return "<i></i>\n".join(map(escape, lines))


def _name(token: bytes) -> str:
    """What to call white space, which has no text to be read out."""
    return "" if token.strip() else f' aria-label="{visible(text_of(token))}"'


def _dead(facts: Facts) -> list[str]:
    split = facts.trained_on or facts.held_out
    dead = np.flatnonzero(split.counts == 0).tolist()
    merged = 256 + len(facts.tokenizer.merges)
    kinds = [
        (sum(1 for i in dead if i < 256), "raw byte"),
        (sum(1 for i in dead if 256 <= i < merged), "merge"),
        (sum(1 for i in dead if i >= merged), "special token"),
    ]
    if not dead:
        return [f"Every id occurs in {split.name}."]
    return [
        (
            f"{counted(len(dead), 'id')} of {number(facts.tokenizer.vocab_size)} never occur in "
            f"{split.name}: {listed([counted(n, kind) for n, kind in kinds if n])}. A model "
            "trained on it learns nothing of their rows in the embedding. Raw bytes must stay all "
            "the same, since with them no text is impossible."
        ),
        f'<span class="ids">{ranges(dead)}</span>' if len(dead) <= 1_000 else "",
    ]


def _unseen_later(facts: Facts) -> str:
    train, held = facts.trained_on, facts.held_out
    if train is None or held is train:
        return ""
    lost = int(np.count_nonzero((train.counts > 0) & (held.counts == 0)))
    fresh = int(np.count_nonzero((train.counts == 0) & (held.counts > 0)))
    said = f"Of the ids that occur in train, {number(lost)} do not occur in {held.name}. "
    if not fresh:
        return f"{said}{held.name} shows none that train does not."
    return (
        f"{said}{counted(fresh, 'id')} of {held.name} never occurred in train: a model meets "
        "them there for the first time."
    )


def _steps(facts: Facts) -> str:
    """Tokens that are nearly always swallowed by a later merge."""
    split = facts.trained_on or facts.held_out
    counts, vocabulary = split.counts.tolist(), facts.tokenizer.vocab
    uses = merge_uses(counts, facts.tokenizer.merges)
    steps = [
        (256 + rank, made)
        for rank, made in enumerate(uses)
        if made >= 20 and counts[256 + rank] * 20 <= made
    ]
    if not steps:
        return ""
    steps.sort(key=lambda step: (-step[1], step[0]))
    shown = "; ".join(
        f"{chip(vocabulary[token], token)} made {number(made)} times, left "
        f"{number(counts[token])} times"
        for token, made in steps[:4]
    )
    return (
        f"{counted(len(steps), 'merge')} of {number(len(uses))} serve as a step on the way: of "
        f"what they make in {split.name}, at least 95\N{NO-BREAK SPACE}% goes into longer tokens. "
        f"{shown}."
    )
