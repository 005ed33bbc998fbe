"""The proof that another library makes our ids: it loads what was written, and both are tried.

Whatever differs is an ExportError with the shortest piece of the text that still shows it, our ids
and theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

from bytepair.chunks import check_text
from bytepair.export import ExportError, probes
from bytepair.files import sha256

Counts = dict[str, int]

_BATCH = 64  # texts; 8 kB each for code points
_SHOWN = 12  # ids


class Ours(Protocol):
    """A Tokenizer, or a Vocabulary of another layout."""

    @property
    def special_tokens(self) -> dict[str, int]: ...
    def encode(self, text: str, *, allowed_special: Collection[str] = ...) -> list[int]: ...
    def decode_bytes(self, ids: Iterable[int]) -> bytes: ...


class Reader(Protocol):
    """Theirs: a library that has loaded an export.

    Attributes:
        name: of the library.
        versions: of the packages that take part.
        thorough: whether to try it on every code point.
        allows_some: whether some special tokens can be allowed and others not.
        ordinary: whether the text of special tokens can be ordinary text.
    """

    @property
    def name(self) -> str: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def thorough(self) -> bool: ...
    @property
    def allows_some(self) -> bool: ...
    @property
    def ordinary(self) -> bool: ...
    def encode(self, texts: list[str], allowed: frozenset[str]) -> list[list[int]]: ...
    def decode(self, ids: list[int]) -> str: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...


def prove(
    ours: Ours, theirs: Reader, texts: Mapping[str, Iterable[str]], *, ids: Collection[int]
) -> dict[str, Any]:
    """Compare everything, and say for the receipt what was compared.

    Args:
        ours: a Tokenizer or a Vocabulary.
        theirs: the library that has loaded the same.
        texts: the user's own, by name, such as the splits.
        ids: all that there are.

    Raises:
        ExportError: the first difference.
    """
    specials = tuple(ours.special_tokens)
    comparison = _Comparison(ours, theirs)
    compared: dict[str, Any] = {"vocabulary": {"ids": comparison.vocabulary(ids)}}
    nothing: frozenset[str] = frozenset()
    probed = {"strings": probes.strings, "long_runs": probes.long_runs}
    if theirs.thorough:
        probed["edges_in_contexts"] = probes.edges_in_contexts
        probed["every_code_point"] = probes.every_code_point
    for name, given in probed.items():
        # of single code points too, decoding would only join the bytes of ids compared above
        compared[name] = comparison.texts(
            name.replace("_", " "), given(), nothing, decoded=name != "every_code_point"
        )
    if specials:
        around = tuple(probes.around_special_tokens(specials))
        if theirs.ordinary:
            compared["special_tokens_as_text"] = comparison.texts(
                "special tokens without permission", around, nothing
            )
        compared["special_tokens_allowed"] = comparison.texts(
            "special tokens with permission", around, frozenset(specials)
        )
        if theirs.allows_some:
            compared["special_tokens_one_by_one"] = _summed(
                comparison.texts(f"only {special!r} allowed", around, frozenset({special}))
                for special in specials[:24]
            )
    compared["texts"] = {name: comparison.own_texts(name, given) for name, given in texts.items()}
    return compared


def prove_on(ours: Ours, theirs: Reader, name: str, texts: Iterable[str]) -> None:
    """Compare on a user's own texts alone.

    Raises:
        ExportError: the first difference.
    """
    _Comparison(ours, theirs).own_texts(name, texts)


class _Comparison:
    def __init__(self, ours: Any, theirs: Reader) -> None:
        self._ours = ours
        self._theirs = theirs

    def vocabulary(self, ids: Iterable[int]) -> int:
        """Each id stands for the same bytes."""
        specials = {number: text for text, number in self._ours.special_tokens.items()}
        count = 0
        for token_id in ids:
            with _panics_refused(self._theirs.name, f"id {token_id}"):
                found = self._theirs.token_bytes(token_id)
            expected = self._ours.decode_bytes([token_id])
            if found != expected:
                kind = "special token" if token_id in specials else "token"
                raise ExportError(
                    f"{self._theirs.name} has other tokens: id {token_id} is the {kind} "
                    f"{expected!r}, there it is {found!r}."
                )
            count += 1
        return count

    def own_texts(self, name: str, texts: Iterable[str]) -> dict[str, Any]:
        kept = list(texts)
        for text in kept:
            check_text(text)
        joined = sha256("\0".join(kept).encode("utf-8"))
        return {"sha256": joined, **self.texts(name, kept, frozenset())}

    def texts(
        self, name: str, texts: Iterable[str], allowed: frozenset[str], *, decoded: bool = True
    ) -> Counts:
        """Encoded alike and, if `decoded`, decoded to the text again."""
        compared = {"texts": 0, "bytes": 0, "tokens": 0}
        for batch in _batches(texts):
            theirs = self._encode(name, batch, allowed)
            for text, found in zip(batch, theirs, strict=True):
                expected = self._ours.encode(text, allowed_special=allowed)
                if found != expected:
                    raise self._difference(name, text, allowed)
                compared["tokens"] += len(expected)
                compared["bytes"] += len(text.encode("utf-8"))
                if decoded:
                    self._check_decoding(name, text, found)
            compared["texts"] += len(batch)
        return compared

    def _check_decoding(self, name: str, text: str, ids: list[int]) -> None:
        with _panics_refused(self._theirs.name, name):
            decoded = self._theirs.decode(ids)
        if decoded != text:
            raise ExportError(
                f"{self._theirs.name} decodes {_some(ids)} to {decoded[:40]!r}, which was "
                f"{text[:40]!r} ({name})."
            )

    def _encode(self, name: str, texts: list[str], allowed: frozenset[str]) -> list[list[int]]:
        with _panics_refused(self._theirs.name, name):
            return self._theirs.encode(texts, allowed)

    def _difference(self, name: str, text: str, allowed: frozenset[str]) -> ExportError:
        def both(part: str) -> tuple[list[int], list[int]]:
            (theirs,) = self._encode(name, [part], allowed)
            return self._ours.encode(part, allowed_special=allowed), theirs

        shown = _shortest(text, lambda part: len(set(map(tuple, both(part)))) > 1)
        ours, theirs = both(shown)
        return ExportError(
            f"{self._theirs.name} gives other ids ({name}): {shown[:80]!r} is {_some(ours)} here "
            f"and {_some(theirs)} there."
        )


def _shortest(text: str, differs: Callable[[str], bool]) -> str:
    """A piece that still differs: halves are dropped from either end, then quarters, and so on."""
    step = len(text) // 2
    while step:
        if differs(text[step:]):
            text = text[step:]
        elif differs(text[:-step]):
            text = text[:-step]
        else:
            step //= 2
        step = min(step, len(text) - 1)
    return text


def _some(ids: list[int]) -> str:
    return str(ids) if len(ids) <= _SHOWN else f"{str(ids[:_SHOWN])[:-1]}, ...]"


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(texts)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


def _summed(counts: Iterable[Counts]) -> Counts:
    total = {"texts": 0, "bytes": 0, "tokens": 0}
    for some in counts:
        for key, value in some.items():
            total[key] += value
    return total


@contextmanager
def _panics_refused(library: str, what: str) -> Iterator[None]:
    """A panic in Rust arrives as an exception that is no Exception; refuse with its words."""
    try:
        yield
    except (ExportError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise ExportError(f"{library} fails ({what}): {error}.") from error
