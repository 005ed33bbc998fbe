"""The model card of an exported tokenizer: what it is, what it was made from, how to load it."""

from __future__ import annotations

from bytepair import __version__
from bytepair.patterns import PRESETS
from bytepair.tokenizer import Tokenizer

_CARD = """\
---
library_name: transformers
tags:
- tokenizer
- byte-level-bpe
---

# {name}

A byte-level BPE tokenizer of {size:,} ids: 256 bytes, {merges:,} merges and {specials} special
tokens. Exported by bytepair {version}; `receipt.json`, if it is there, says on which texts the
ids were found equal to those of the original.

```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")
ids = tokenizer("Any text, in any script.")["input_ids"]
```

or without transformers:

```python
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("path/to/this/folder/tokenizer.json")
ids = tokenizer.encode("Any text, in any script.").ids
```

## Provenance

| | |
| --- | --- |
| SHA-256 of `bpe.json` | `{sha256}` |
| SHA-256 of the text trained on | {train} |
| pattern | {pattern} |

The pattern in `tokenizer.json` has the code points of Unicode 16.0 written out, so that it cuts the
same text the same way with every version of the library.

## Special tokens

{table}

In a text, both libraries take the text of a special token for that token. To have it as ordinary
text, set `encode_special_tokens = True` in tokenizers, or pass `split_special_tokens=True` in
transformers.
"""


def write(tokenizer: Tokenizer, name: str) -> str:
    """The text of README.md."""
    specials = tokenizer.special_tokens
    rows = ["| id | text |", "| ---: | --- |"]
    rows += [f"| {number} | {_code(text)} |" for text, number in specials.items()]
    return _CARD.format(
        name=name,
        size=tokenizer.vocab_size,
        merges=len(tokenizer.merges),
        specials=len(specials) or "no",
        version=__version__,
        sha256=tokenizer.sha256,
        train="unknown" if tokenizer.train_sha256 is None else f"`{tokenizer.train_sha256}`",
        pattern=_pattern(tokenizer),
        table="\n".join(rows) if specials else "There are none.",
    )


def _pattern(tokenizer: Tokenizer) -> str:
    pattern = tokenizer.pattern
    if pattern.regex is None:
        return "none: merges may cross words"
    names = [
        name
        for name, preset in PRESETS.items()
        if (preset.regex, preset.engine) == (pattern.regex, pattern.engine)
    ]
    return f"`{names[0]}`: {_code(pattern.regex)}" if names else _code(pattern.regex)


def _code(text: str) -> str:
    """Text as code in a cell of a table, whatever is in it."""
    shown = text.encode("unicode_escape").decode() if not text.isprintable() else text
    fence = "`"
    while fence in shown:
        fence += "`"
    room = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{fence}{room}{shown}{room}{fence}".replace("|", "\\|")
