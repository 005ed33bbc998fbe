"""Puts the report together: one HTML file that asks nothing of any network.

The page forbids itself all requests, by a content security policy that names its own style and
script by hash. Every section but the word builder and the table of tokens can be read without
script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files as resources
from typing import Any

from bytepair.report import evaluation, figures, sections
from bytepair.report.facts import Facts
from bytepair.report.markup import counted, number, paragraphs


@dataclass(frozen=True)
class Section:
    """A section by its anchor, title and HTML."""

    key: str
    title: str
    html: str


def render(facts: Facts) -> bytes:
    """The whole file: UTF-8, LF, the same bytes for the same facts."""
    body, data = _sections(facts)
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    fields = {
        "policy": policy,
        "style": style,
        "name": escape(facts.name),
        "summary": _summary(facts),
        "key_figures": sections.key_figures(facts),
        "contents": "".join(
            f'<li><a href="#{section.key}">{section.title}</a></li>' for section in body
        ),
        "sections": "\n".join(_html(section) for section in body),
        "sha256": facts.tokenizer.sha256,
        "data": _json(_data(facts) | data),
        "script": script,
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda field: fields[field[1]], _resource("page.html"))
    return f"{page}\n".encode()


def _sections(facts: Facts) -> tuple[Sequence[Section], dict[str, Any]]:
    sizes, data = figures.sizes(facts)
    return (
        Section("figures", "Figures", sections.at_a_glance(facts)),
        Section("reading", "A page in tokens", sections.page_of_text(facts)),
        Section("building", "How a word is built", _resource("building.html")),
        Section("sizes", "How many ids?", sizes),
        Section("lengths", "How long are tokens?", figures.lengths(facts)),
        Section("frequencies", "How often do they occur?", figures.frequencies(facts)),
        Section("use", "Is the vocabulary used?", sections.use(facts)),
        Section("probes", "Strings that people ask about", evaluation.probes(facts)),
        Section("leakage", "Leakage", evaluation.leakage(facts)),
        Section("documents", "Document by document", evaluation.documents(facts)),
        Section("comparison", "Other tokenizers", evaluation.comparison(facts)),
        Section("tokens", "Every token", _resource("tokens.html")),
        Section("identity", "What it is, to the byte", sections.identity(facts)),
        Section("definitions", "What is measured", _resource("definitions.html")),
    ), {"sizes": data, "word": sections.default_word(facts)}


def _html(section: Section) -> str:
    return (
        f'<section id="{section.key}" aria-labelledby="{section.key}-heading">\n'
        f'<h2 id="{section.key}-heading">{section.title}</h2>\n{section.html}\n</section>\n'
    )


def _summary(facts: Facts) -> str:
    tokenizer, train = facts.tokenizer, facts.trained_on
    trained = ""
    if train is not None:
        trained = (
            f", trained on {counted(len(train.documents), 'document')} "
            f"({number(train.size)} bytes) of the corpus {escape(facts.corpus or '')}"
        )
    cut = "Merges may reach over anything, since no pattern cuts the text first."
    if tokenizer.pattern.regex is not None:
        own = facts.pattern == "its own"
        cut = (
            f"Text is cut by {'a pattern of its own' if own else 'the pattern ' + facts.pattern} "
            "first, and merges stay inside what it cuts."
        )
    return paragraphs(
        f"A byte-level BPE tokenizer of {counted(tokenizer.vocab_size, 'id')}{trained}. It starts "
        "from the 256 bytes and, again and again, makes the most frequent pair of neighbours a "
        f"token of its own. {cut}"
    )


def _data(facts: Facts) -> dict[str, Any]:
    """What the page's script works on: the merges, the special tokens, the counts of each split."""
    return {
        "merges": [part for pair in facts.tokenizer.merges for part in pair],
        "special": list(facts.tokenizer.special_tokens),
        "counts": {split.name: split.counts.tolist() for split in facts.splits},
    }


def _json(value: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return (resources("bytepair.report") / "assets" / name).read_text(encoding="utf-8").strip("\n")


def _hash(source: str) -> str:
    digest = hashlib.sha256(f"\n{source}\n".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
