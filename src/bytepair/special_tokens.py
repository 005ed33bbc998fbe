"""Special tokens: texts such as `<|endoftext|>` that have an id and that no merge touches.

Their text in a text is ordinary, unless it is allowed to be more; then the longest one counts at
each place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from bytepair.chunks import check_text
from bytepair.errors import TokenError

Choice = Literal["all"] | Collection[str]
# Gives what stands between allowed special tokens, each with the id of the one after it.
Cutter = Callable[[str], Iterator[tuple[str, int | None]]]

# The texts by which a special token is known to have a role, the surest first.
ROLES = {
    "bos": ("<bos>", "<s>", "<|bos|>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>"),
    "eos": ("<eos>", "</s>", "<|eos|>", "[EOS]", "<|end_of_text|>", "<|endoftext|>"),
    "unk": ("<unk>", "<|unk|>", "[UNK]"),
    "pad": ("<pad>", "<|pad|>", "[PAD]"),
}


class SpecialTokens:
    """The special tokens of a tokenizer.

    Attributes:
        ids: from each one's text to its id, in id order.
    """

    def __init__(self, ids: dict[str, int]) -> None:
        self.ids = ids

    def cutter(self, allowed: Choice, disallowed: Choice) -> Cutter | None:
        """What cuts texts at the allowed ones and refuses the others; None if it would do neither.

        Raises:
            TokenError: one that is named is not known.
        """
        taken = self._chosen(allowed)
        refused = self._chosen(disallowed) - taken
        found = compile_special_tokens(taken | refused)
        if found is None:
            return None

        def cut(text: str) -> Iterator[tuple[str, int | None]]:
            end = 0
            for match in self._matches(found, text, refused):
                yield text[end : match.start()], self.ids[match.group()]
                end = match.end()
            yield text[end:], None

        return cut

    def _matches(
        self, found: re.Pattern[str], text: str, refused: set[str]
    ) -> Iterator[re.Match[str]]:
        for match in found.finditer(text):
            if match.group() in refused:
                raise TokenError(
                    f"the text holds the special token {match.group()!r} at position "
                    f"{match.start()}: name it in allowed_special to make it an id, or leave it "
                    "out of disallowed_special to make it ordinary text."
                )
            yield match

    def _chosen(self, choice: Choice) -> set[str]:
        if isinstance(choice, str):
            if choice != "all":
                raise TokenError(f"expected 'all' or a set of special tokens, got {choice!r}.")
            return set(self.ids)
        choice = list(choice)  # any iterable, read once
        unknown = [text for text in choice if text not in self.ids]
        if unknown:
            raise TokenError(
                f"{unknown[0]!r} is not a special token of this tokenizer: it has {list(self.ids)}."
            )
        return set(choice)


def by_role(special_tokens: Collection[str]) -> dict[str, str]:
    """The special token of each role of ROLES that one has.

    >>> by_role(["<s>", "</s>", "<|endoftext|>", "<tool>"])
    {'bos': '<s>', 'eos': '</s>'}
    """
    found = (
        (role, next((text for text in texts if text in special_tokens), None))
        for role, texts in ROLES.items()
    )
    return {role: text for role, text in found if text is not None}


def check_special_tokens(special_tokens: Sequence[str]) -> tuple[str, ...]:
    """Special tokens are non-empty, distinct strings; their order is the order of their ids."""
    if isinstance(special_tokens, str) or not isinstance(special_tokens, Sequence):
        raise TokenError(
            f"special_tokens must be a list of strings, since their order gives their ids, "
            f"not {special_tokens!r}."
        )
    for special in special_tokens:
        if not isinstance(special, str):
            raise TokenError(f"special token {special!r} is not a string.")
        if special == "":
            raise TokenError("special token '' is empty and would match everywhere: remove it.")
        check_text(special)
    twice = [text for text, number in Counter(special_tokens).items() if number > 1]
    if twice:
        raise TokenError(f"special token {twice[0]!r} is listed twice: remove one.")
    return tuple(special_tokens)


def compile_special_tokens(special_tokens: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds special tokens, the longest at each place; None if there are none."""
    longest_first = sorted(special_tokens, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
