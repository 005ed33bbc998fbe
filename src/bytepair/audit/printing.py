"""What check and verify found, as lines for people; for machines there is `--json-out`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from bytepair.audit.check import Verdict
from bytepair.audit.judge import Finding
from bytepair.audit.verify import Verification

_WIDTH = 100
_LABEL = 9
_LISTED = 24  # documents, so that a corpus of thousands stays readable
_STAGES = 4
_STAGE = 32


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Facts first, then what could not be checked, what is wrong, and the verdict itself."""
    for name, facts in verdict.corpora.items():
        lines = _shards if "manifest" in facts else _corpus
        yield from _section(f"corpus {name}", facts, lines)
    for name, facts in verdict.tokenizers.items():
        yield from _section(f"tokenizer {name}", facts, _tokenizer)
    if verdict.absent:
        yield "absent:"
        said = {True: " (made again all the same)", False: " (not checked)"}
        yield from _by_folder({path: said[again] for path, again in verdict.absent.items()})
        yield ""
    if verdict.not_checked:
        yield "not checked:"
        yield from (f"  {what}: {why}." for what, why in verdict.not_checked.items())
        yield ""
    if verdict.changes:
        yield "`dvc repro` will change:"
        yield from (f"  {change}" for change in verdict.changes)
        yield ""
    yield from map(_finding, verdict.findings)
    if verdict.findings:
        yield f"findings: {len(verdict.findings):,}"
    else:
        again = [facts["made_again"] for facts in verdict.tokenizers.values()]
        yield (
            f"dvc.lock belongs to this code and these parameters: {verdict.stages} stages; "
            f"{sum(again)} of {len(again)} tokenizers made again from their text."
        )


def verification_lines(found: Verification) -> Iterator[str]:
    """What is as it should be, stage by stage; what is absent; each difference; the sum of it."""
    for part in found.verified:
        files = f"{part.files:>4} file{'s' if part.files > 1 else ' '}"
        yield f"{part.stage:<{_STAGE}}{files}{part.size:>14,} bytes  {part.how}"
    if found.absent:
        yield from ("", "absent:", *_by_folder(dict.fromkeys(found.absent, "")))
    if found.not_at_hand:
        yield from ("", "not made again from shards:")
        yield from (f"  corpus {name}: {why}." for name, why in found.not_at_hand.items())
    if found.not_verified:
        yield from ("", "not verified, since what it is made from is absent:")
        yield from _by_folder(dict.fromkeys(found.not_verified, ""))
    yield ""
    for bad in found.differences:
        yield f"{bad.path}: {bad.problem}. Run `dvc repro --force {bad.stage}`."
    if found.differences:
        yield f"differences: {len(found.differences):,}"
    elif found.verified:
        total = sum(part.files for part in found.verified)
        yield f"verified: {total:,} files of {len(found.verified):,} stages"
    else:
        yield "nothing is there. Run `dvc repro`."


def _section(
    title: str, facts: dict[str, Any], lines: Callable[[dict[str, Any]], Iterator[str]]
) -> Iterator[str]:
    if not facts["made_again"]:
        title += ", not made again" + (": as in dvc.lock" if len(facts) > 1 else "")
    yield title
    if len(facts) > 1:
        yield from lines(facts)
    yield ""


def _corpus(facts: dict[str, Any]) -> Iterator[str]:
    for name in ("raw", "clean"):
        yield from _entry(name, [_file(facts[name])])
    for name, split in facts["splits"].items():
        yield from _entry(name, [_file(split)])
        number = len(split["documents"])
        yield from _entry(
            "", [f"{number:,} document{'s'[: number != 1]}:", *_sizes(split["documents"])]
        )
    if facts["dropped"]:
        yield from _entry("dropped", _sizes(facts["dropped"]))


def _shards(facts: dict[str, Any]) -> Iterator[str]:
    manifest = facts["manifest"]
    number = f"{manifest['shards']:,} with {manifest['documents']:,} documents"
    yield from _entry("shards", [number, f"{manifest['skipped']:,} records skipped"])
    yield from _entry("manifest", [f"{manifest['bytes']:,} bytes  sha256 {manifest['sha256']}"])
    shares = [f"{name} {share}" for name, share in facts["shares"].items()]
    yield from _entry("split", [*shares, f"seed {facts['seed']}"])


def _tokenizer(facts: dict[str, Any]) -> Iterator[str]:
    vocab, merges, chunks = facts["vocab"], facts["merges"], facts["chunks"]
    ids = [f"{vocab['size']:,}"]
    if vocab["size"] != vocab["requested"]:
        ids.append(f"of {vocab['requested']:,} asked for")
    ids += (f"{number} {text!r}" for text, number in facts["special_tokens"].items())
    yield from _entry("sha256", [facts["sha256"]])
    yield from _entry("ids", ids)
    yield from _entry("pattern", [repr(facts["pattern"]) if facts["pattern"] else "none"])
    if chunks:
        distinct = f"{chunks['distinct']:,} distinct with {chunks['positions']:,} byte positions"
        yield from _entry("chunks", [f"{chunks['total']:,}", distinct])
    yield from _entry("merges", [f"{merges['number']:,}", f"sha256 {merges['sha256']}"])
    yield from _entry("", map(_merge, merges["first"]))
    for name, split in facts["splits"].items():
        yield from _entry(name, _split(split))
    unused = facts["unused_on_train"]
    raw = sum(number < 256 for number in unused)
    yield from _entry("unused", [f"{len(unused):,} ids on train", f"{raw:,} of them raw bytes"])
    yield from _entry("longest", [repr(token["text"]) for token in facts["longest_tokens"]])


def _by_folder(paths: dict[str, str]) -> Iterator[str]:
    """Paths, a line for each folder and what is said of them."""

    def folder(path: str) -> str:
        return path.rpartition("/")[0]

    for parent, inside in groupby(sorted(paths, key=folder), folder):
        for said, group in groupby(inside, paths.__getitem__):
            names = ", ".join(path.rpartition("/")[2] for path in group)
            yield f"  {parent}: {names}{said}"


def _finding(finding: Finding) -> str:
    """One line: which stages if the problem does not say so, what is wrong, what to do."""
    named = ", ".join(finding.stages)
    if len(finding.stages) > _STAGES:
        kinds = dict.fromkeys(stage.partition("@")[0] for stage in finding.stages)
        named = f"{len(finding.stages)} stages ({', '.join(kinds)})"
    said = f"{named}: {finding.problem}" if named else finding.problem
    return f"{said}. {finding.remedy}" if finding.remedy else said


def _entry(label: str, parts: Iterable[str]) -> Iterator[str]:
    """A label and its parts, in as many lines as they need; none is cut in two."""
    line = f"  {label:<{_LABEL}}"
    indent = " " * len(line)
    for number, part in enumerate(parts):
        if number and len(line) + len(part) > _WIDTH:
            yield line.rstrip()
            line = indent
        line += f"{part}  "
    yield line.rstrip()


def _file(record: dict[str, Any]) -> str:
    return f"{record['bytes']:,} bytes  sha256 {record['sha256']}"


def _sizes(documents: list[dict[str, Any]]) -> list[str]:
    """The first documents by name and size in bytes."""
    sizes = [f"{document['name']} {document['bytes']:,}" for document in documents[:_LISTED]]
    more = len(documents) - _LISTED
    return [*sizes, f"and {more:,} more"] if more > 0 else sizes


def _merge(merge: dict[str, Any]) -> str:
    left, right = merge["pair"]
    return f"({left},{right})" + ("" if merge["count"] is None else f" {merge['count']:,}")


def _split(split: dict[str, Any]) -> Iterator[str]:
    separators = f" ({split['separators']:,} separators)" if split["separators"] else ""
    yield f"{split['bytes']:,} bytes"
    yield f"{split['tokens']:,} tokens{separators}"
    yield f"{split['bytes_per_token']:.4f} bytes/token"
    if split.get("bits_per_byte") is not None:
        yield f"{split['bits_per_byte']:.4f} bits/byte"
    if split["largest_id"] is not None:
        yield f"largest id {split['largest_id']}"
