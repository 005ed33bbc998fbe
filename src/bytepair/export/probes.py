r"""Texts on which two tokenizers that should be one must agree.

Libraries differ where nobody looks: on U+001C or U+0085, on a character that a newer Unicode made a
letter, at the end of a text, after a carriage return. So every code point is tried, in four
contexts; those at which a table begins or ends, and all below U+0250, in many more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

from bytepair.freezing import ranges
from bytepair.unicode16 import TABLES

# After a letter, doubled, after a space, before a letter.
EVERYWHERE = "a{0}{0} {0}b"
# The same alone at both ends of a text, around digits, line ends, marks, contractions, in runs.
AT_EDGES = (
    "{0}", " {0}", "{0} ", "  {0}", "{0}  ", "\n{0}", "{0}\n", "\r\n{0}\r\n", "a{0}b", "A{0}B",
    "{0}s", "1{0}1", "1234{0}5678", "!{0}!", "'{0}", "'{0}s", "{0}'s", "{0}'LL{0}", "\t{0}\t",
    "{0}\u0301", "\u0301{0}", "\u00e9{0}\u00c9", "\u4e2d{0}\u4e2d", "{0}/{0}", "{0}\n{0} {0}",
)  # fmt: skip

# Characters; what costs a library time squared is felt from here on. tiktoken itself ends with a
# stack overflow at a million spaces before a letter, with the patterns it publishes, too.
LONG_RUN = 5_000
_RUNS = (" ", "\n", "\r\n", "\t", "a", "A", "Aa", "1", "!", "'s", "\u00e9", "\u0301", "\u4e2d",
         "\0", "ab ", " \n", "\u00a0", "\U0001f600")  # fmt: skip

_STRINGS = (
    "", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", " \n ", "\r", "\r\n", "\n\r", "\r\n\r\n",
    "\t", "\t\t", " \t ", "\0", "\0\0", "a\0b", "\x0b", "\x0c", "\x1c", "a\x1cb", "\x85", "\xa0",
    "a\xa0b", "a  b", "a   b", "a \n b", "a\n\n  b", "a  ", "a \n  ", "\n\n\na", "x\r\ny",
    "  \r\n  \r\n", "'''s'''",
    "Holmes's 1892 pipe\u2014\n  smoke", "it's IT'S it\u2019s it'\u017f we'LL they'Re",
    "HELLOWorld helloWORLD HTTPServer", "1 12 123 1234 12345 1,234.5 \u0663\u0664\u0665\u0666",
    "café cafe\u0301 \u0301", "½ ² Ⅷ", "你好世界", "\u200d\ufeff\ufffd", "👩\u200d👩\u200d👧 🇩🇪",
    "สวัสดี", "السلام", "שלום", "नमस्ते",
    "/* a//b */\n\tif (x != y) {\n\t\treturn;\n\t}\n", "https://example.org/?a=1&b=%20#c",
)  # fmt: skip


def is_character(number: int) -> bool:
    """Whether a code point can stand in a text: surrogates cannot."""
    return not 0xD800 <= number <= 0xDFFF


def every_code_point(step: int = 1_024) -> Iterator[str]:
    """Texts in which every code point but surrogates stands, in four contexts each."""
    for start in range(0, 0x110000, step):
        numbers = filter(is_character, range(start, start + step))
        if text := "".join(EVERYWHERE.format(chr(number)) for number in numbers):
            yield text


@cache
def edge_characters() -> tuple[str, ...]:
    """The characters below U+0250, and those at which a category of Unicode begins or ends."""
    runs = [run for table in TABLES.values() for run in ranges(table)]
    edges = {number for first, last in runs for number in (first - 1, first, last, last + 1)}
    numbers = sorted(filter(is_character, edges.union(range(0x250)) - {0x110000}))
    return tuple(map(chr, numbers))


def edges_in_contexts() -> Iterator[str]:
    """Each edge character in every context: a text for each of ASCII, else one for a context."""
    for context in AT_EDGES:
        characters = edge_characters()
        yield from (context.format(character) for character in characters[:128])
        for start in range(128, len(characters), 256):
            yield "".join(map(context.format, characters[start : start + 256]))


def cut_probes() -> Iterator[str]:
    """What shows whether two patterns cut alike."""
    yield from strings()
    yield from edges_in_contexts()
    yield from every_code_point()


def strings() -> Iterator[str]:
    """Spaces, line ends, NUL, scripts, and all short texts of what patterns tell apart."""
    yield from _STRINGS
    for length in (2, 3, 4):
        yield from map("".join, product(" \n\ra1'!", repeat=length))


def long_runs() -> Iterator[str]:
    """The same again and again, alone and before other characters."""
    for unit in _RUNS:
        run = unit * (LONG_RUN // len(unit))
        yield from (run, run + "x", run + "!", "x" + run + " ")


def around_special_tokens(special_tokens: Sequence[str]) -> Iterator[str]:
    """Texts with special tokens whole, cut short, doubled, side by side and overlapping."""
    for special in special_tokens:
        for before, after in (("", ""), ("a", "b"), (" ", " "), ("\n", "\n"), ("1", "'s")):
            yield f"{before}{special}{after}"
        yield from (special[:-1], special[1:], special[:-1] + "x", special.upper(), special[::-1])
    some = special_tokens[:24]  # pairs of hundreds would be tens of thousands
    for first, second in product(some, some):
        yield from (first + second, f"{first} {second}")
        for length in range(1, min(len(first), len(second))):
            if first.endswith(second[:length]):
                yield first + second[length:]
