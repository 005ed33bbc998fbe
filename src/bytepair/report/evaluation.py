"""The sections that try a tokenizer: probes, leakage, single documents, other tokenizers."""

from __future__ import annotations

import statistics
from html import escape

from bytepair.report.facts import Facts
from bytepair.report.markup import (
    chip,
    code,
    counted,
    listed,
    number,
    paragraphs,
    percent,
    table,
    text_of,
    visible,
)
from bytepair.report.probes import PROBES, Split, Splitter

MOST_DOCUMENTS = 200
LONG_PROBE = 12  # tokens that fit beside another probe


def probes(facts: Facts) -> str:
    """How strings that people ask about are split, and why."""
    splitter, parts = Splitter(facts.tokenizer), []
    for probe in PROBES:
        rows = "".join(_probe(splitter.split(text), facts) for text in probe.texts)
        parts.append(
            f"<h3>{escape(probe.title)}</h3><p>{escape(probe.lesson)}</p>"
            f'<ul class="probes">{rows}</ul>'
        )
    return "\n".join(parts)


def leakage(facts: Facts) -> str:
    """What a figure on val gains if val was trained on."""
    val, train = facts.split("val"), facts.trained_on
    if facts.leaked is None or val is None or train is None:
        return paragraphs(
            "This needs a train and a val split that are at hand and small enough to be trained "
            "on again on the spot."
        )
    own = val.bytes_per_token
    rows = [
        ("train alone, as it should be", number(own, 4), "–"),
        ("all documents, val among them", number(facts.leaked, 4), _signed(facts.leaked / own - 1)),
    ]
    return table("Bytes per token on val", ("trained on", "val bytes per token", "gain"), rows) + (
        paragraphs(
            "The same training on all documents, val included, gives a tokenizer that has seen "
            "the text it is judged by. What it gains there is not skill: with a text of one’s own "
            "it is gone. That is why splits are made of whole documents before anything is "
            f"counted. (Part of it may be that {number(facts.shown_bytes)} bytes teach more than "
            f"{number(train.size)}.)",
        )
    )


def documents(facts: Facts) -> str:
    """Bytes per token of each document."""
    listed_ = [
        (split.name, document)
        for split in facts.splits
        for document in split.documents
        if document.tokens
    ]
    rows = [
        (
            escape(document.name) or "the text",
            split,
            number(document.size),
            number(document.tokens),
            number(document.size / document.tokens, 4),
        )
        for split, document in listed_[:MOST_DOCUMENTS]
    ]
    figures = [document.size / document.tokens for _, document in listed_]
    said = "There is one document only, so how much figures differ between texts is not known."
    if len(figures) > 1:
        low, high = (pick(range(len(figures)), key=figures.__getitem__) for pick in (min, max))
        said = (
            f"From {number(figures[low], 3)} ({escape(listed_[low][1].name)}) to "
            f"{number(figures[high], 3)} ({escape(listed_[high][1].name)}), with a standard "
            f"deviation of {number(statistics.pstdev(figures), 3)}: a difference between two "
            "splits that is no larger than this is one between texts, not between tokenizers."
        )
    if len(listed_) > MOST_DOCUMENTS:
        said += f" The first {MOST_DOCUMENTS} of {number(len(listed_))} documents are listed."
    header = ("document", "split", "bytes", "tokens", "bytes per token")
    return table("Bytes per token by document", header, rows) + paragraphs(said)


def comparison(facts: Facts) -> str:
    """The pipeline's other tokenizers of the same corpus."""
    if len(facts.rivals) < 2:
        return paragraphs(
            "No other tokenizer of this corpus has been measured. A second block under "
            "<code>tokenizers</code> in params.yaml, with the same corpus, puts one here."
        )
    rows = []
    for rival in facts.rivals:
        val = rival.figures.get("val", {})
        difference = "this one"
        if rival.difference is not None:
            difference = _difference(rival.difference.value)
            if rival.difference.low is not None and rival.difference.high is not None:
                low, high = rival.difference.low, rival.difference.high
                difference += f" ({_difference(low)} to {_difference(high)})"
        elif rival.name != facts.name:
            difference = "–"
        rows.append(
            (
                escape(rival.name),
                escape(rival.pattern),
                number(rival.figures["vocab"]["size"]),
                number(rival.figures.get("train", {}).get("bytes_per_token"), 4),
                number(val.get("bytes_per_token"), 4),
                number(val.get("fertility"), 3),
                number(val.get("bits_per_byte"), 4),
                difference,
            )
        )
    header = (
        "tokenizer", "pattern", "ids", "train bytes per token", "val bytes per token",
        "val tokens per word", "val bits per byte", "difference in bits per byte, 95 %",
    )  # fmt: skip
    return table(f"Tokenizers of {facts.corpus}", header, rows) + paragraphs(_verdict(facts))


def _probe(split: Split, facts: Facts) -> str:
    vocabulary = facts.tokenizer.vocab
    chunks = '<span class="cut" aria-hidden="true"></span>'.join(
        "".join(chip(vocabulary[token], token) for token in chunk) for chunk in split.chunks
    )
    long = ' class="long"' if split.tokens > LONG_PROBE else ""
    characters, size = len(split.text), len(split.text.encode())
    return (
        f"<li{long}><p>{code(visible(split.text))} <span>{counted(split.tokens, 'token')} for "
        f"{counted(characters, 'character')}"
        + (f", {counted(size, 'byte')}" if size != characters else "")
        + f'</span></p><p class="chips">{chunks}</p><p class="why">{_why(split, facts)}</p></li>'
    )


def _why(split: Split, facts: Facts) -> str:
    vocabulary = facts.tokenizer.vocab
    reasons = []
    if len(split.chunks) > 1:
        reasons.append(f"The pattern cuts {counted(len(split.chunks) - 1, 'time')}.")
    if split.stops is not None:
        left, right = (visible(text_of(vocabulary[token])) for token in split.stops)
        where = ""
        if len(split.chunks) > 1:
            inside = next(chunk for chunk in split.chunks if len(chunk) > 1)
            chunk = b"".join(vocabulary[token] for token in inside)
            where = f"Inside {code(visible(text_of(chunk)))}, "
        reasons.append(f"{where}no merge joins {code(left)} and {code(right)}.")
    if split.broken:
        shown = [f"{code(visible(c))} ({c.encode().hex(' ')})" for c in split.broken[:2]]
        reasons.append(
            f"No token holds all bytes of {listed(shown)} at once"
            + (", nor of others here." if len(split.broken) > 2 else " here.")
        )
    if split.tokens == 1:
        (token,) = split.chunks[0]
        reasons.append(f"Merges make all of it, the last of rank {number(token - 256)}.")
    return " ".join(reason[0].upper() + reason[1:] for reason in reasons)


def _verdict(facts: Facts) -> str:
    best = max(facts.rivals, key=lambda r: r.figures.get("val", {}).get("bytes_per_token") or 0)
    said = f"{escape(best.name)} makes the shortest sequences of val."
    for rival in facts.rivals:
        if rival.difference is None or rival.difference.value is None:
            continue
        if not rival.difference.excludes_zero:
            said += f" In bits per byte, {escape(rival.name)} differs by no more than chance."
        else:
            word = "less" if rival.difference.value < 0 else "more"
            said += (
                f" {escape(rival.name)} pays {number(abs(rival.difference.value), 4)} bits per "
                f"byte {word} than {escape(facts.name)}, which is more than chance."
            )
    return said + (
        " A larger vocabulary sees more text at once in the same short context, so part of a "
        "difference is the model’s, not the tokenizer’s."
    )


def _signed(share: float) -> str:
    return ("+" if share > 0 else "") + percent(share, 2)


def _difference(value: float | None) -> str:
    return ("+" if value and value > 0 else "") + number(value, 4)
