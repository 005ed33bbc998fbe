"""`bytepair diff`: two tokenizers side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import click

from bytepair.commands import examples
from bytepair.commands._texts import FILE, read_text
from bytepair.commands._tokenizers import load_tokenizer
from bytepair.inspection import counted, pattern_name, quoted

if TYPE_CHECKING:
    from bytepair.diffing import Merge, MergeDifference
    from bytepair.tokenizer import Tokenizer
    from bytepair.word_cuts import TextDifference


@click.command(
    epilog=examples(
        "bytepair diff sherlock-512 chat-1024",
        "bytepair diff sherlock-512 sample-512 --text data/sample/tales.txt",
        "bytepair diff old/bpe.json new/bpe.json --text - < held-out.txt",
    )
)
@click.argument("a")
@click.argument("b")
@click.option("--text", type=FILE, help="Compare how they cut this file, too.")
@click.option(
    "--examples",
    "number",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many tokens and words to show.",
)
def diff(a: str, b: str, text: BinaryIO | None, number: int) -> None:
    """Tell two tokenizers apart.

    Merges count as the same if they join the same bytes, whatever their ids. A word of the text is
    a run of characters without ASCII white space; it is cut differently if the tokens inside of it
    have other edges. Special tokens are text.
    """
    from bytepair.diffing import compare_merges

    tokenizers = load_tokenizer(a), load_tokenizer(b)
    for line in _facts(*tokenizers):
        click.echo(line)
    for line in _merges(compare_merges(*tokenizers), number):
        click.echo(line)
    if text is not None:
        from bytepair.word_cuts import compare_on_text

        found = compare_on_text(*tokenizers, read_text(text), examples=number)
        for line in _text(found):
            click.echo(line)


def _facts(a: Tokenizer, b: Tokenizer) -> Iterator[str]:
    yield f"A  {a.vocab_size:,} ids, pattern {pattern_name(a.pattern)}, sha256 {a.sha256[:12]}"
    yield f"B  {b.vocab_size:,} ids, pattern {pattern_name(b.pattern)}, sha256 {b.sha256[:12]}"
    if list(a.special_tokens) != list(b.special_tokens):
        yield f"special tokens: A {list(a.special_tokens)}, B {list(b.special_tokens)}"
    if a == b:
        yield "A and B are the same tokenizer."


def _merges(found: MergeDifference, number: int) -> Iterator[str]:
    common = counted(found.common, "merge")
    yield f"{common} in common; the first {found.same:,} are the same in both"
    if any(found.first):
        first, second = map(_merge, found.first)
        yield f"rank {found.same:,}: A {first}, B {second}"
    for name, tokens in zip("AB", found.only, strict=True):
        if tokens:
            yield f"{counted(len(tokens), 'token')} only in {name}: {_some(tokens, number)}"


def _text(found: TextDifference) -> Iterator[str]:
    yield ""
    for name, tokens in zip("AB", found.tokens, strict=True):
        ratio = f", {found.size / tokens:.4f} bytes/token" if tokens else ""
        yield f"{name}  {counted(tokens, 'token')}{ratio}"
    share = 100 * found.different / max(found.words, 1)
    yield f"{found.different:,} of {counted(found.words, 'word')} cut differently ({share:.1f} %)"
    width = len(f"{found.examples[0].times:,}") if found.examples else 0
    for example in found.examples:
        first, second = ("│".join(map(_bare, pieces)) for pieces in example.pieces)
        yield f"{example.times:>{width},} ×  A {first}  B {second}"


def _merge(merge: Merge | None) -> str:
    return "has no more" if merge is None else " + ".join(map(quoted, merge))


def _some(tokens: Sequence[bytes], number: int) -> str:
    return " ".join((*map(quoted, tokens[:number]), *(["…"] if len(tokens) > number else [])))


def _bare(token: bytes) -> str:
    return quoted(token)[1:-1]
