"""Build the texts that the tools are compared on, and the vocabularies to encode them with.

    python benchmarks/texts.py        # into benchmarks/texts; what is there already is kept

english        some 235 MB of technical English: this machine's documentation, manual pages, Python
               and Perl sources and C headers
english10      its first 10 MB; english1, english2, english4: its first eighth, quarter and half
multilingual   some 28 MB, most of it beyond ASCII: translated manual pages, the Debian Reference,
               message catalogues
shakespeare    1.1 MB, from the pipeline

The first ones are what a Debian system has, so they differ from machine to machine: compare tools
on the same text, never figures from two machines. Files are taken once each, in an order that only
their paths decide, until a source's share is full.
"""

from __future__ import annotations

import gettext
import gzip
import hashlib
import html
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import vocabulary
from bytepair import Tokenizer

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "texts"
SHAKESPEARE = ROOT / "data" / "corpora" / "shakespeare" / "raw" / "raw.txt"
SHERLOCK_COUNTS = ROOT / "data" / "tokenizers" / "sherlock-512" / "counts"
VOCAB_SIZE = 32768
LARGEST = 6_000_000  # bytes of one file

# (folder, names to take, megabytes)
ENGLISH = (
    ("/usr/share/doc", r"\.(gz|md|txt|html)$|/(copyright|README)$", 80),
    ("/usr/share/man", r"/man/man\d/", 60),
    ("/usr/lib", r"\.(py|pm|txt|html)$", 55),
    ("/usr/include", r"\.(h|hpp)$", 20),
    ("/usr/share/perl", r"\.(pm|pl|pod)$", 20),
)
PACKAGES = (
    "manpages-ja",
    "manpages-zh",
    "manpages-ru",
    "debian-reference-ja",
    "debian-reference-zh-cn",
)
CATALOGUES = (
    "ar", "bn", "el", "fa", "gu", "he", "hi", "ja", "ka", "ko", "ml", "pa", "ru", "ta", "te", "th",
    "uk", "zh_CN", "zh_TW",
)  # fmt: skip
_MARKUP = re.compile(r"(?s)<(script|style)\b.*?</\1>|<[^>]+>")


def text_path(name: str) -> Path:
    """Where a text lies."""
    return SHAKESPEARE if name == "shakespeare" else FOLDER / f"{name}.txt"


def vocabulary_path(name: str) -> Path:
    """The folder of the vocabulary trained on a text."""
    return FOLDER / f"{name}.vocabulary"


def plain_text(path: Path) -> str | None:
    """A file's text, unpacked and without HTML's markup; None if it is not UTF-8 text."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        text = data.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError):
        return None
    if "\0" in text:
        return None
    if path.suffix == ".html":
        text = re.sub(r"\n\s*\n\s*\n", "\n\n", html.unescape(_MARKUP.sub("", text)))
    return text


def files_below(folder: Path, names: str) -> Iterator[str]:
    """The texts of the files below a folder, in the order of their paths' hashes."""
    paths = [
        path
        for path in folder.rglob("*")
        if re.search(names, path.as_posix()) and path.is_file() and not path.is_symlink()
    ]
    paths.sort(
        key=lambda path: hashlib.sha256(path.relative_to(folder).as_posix().encode()).digest()
    )
    yield from filter(None, map(plain_text, paths))


def catalogue(language: str) -> Iterator[str]:
    """The messages of every programme translated into a language."""
    for path in sorted(Path("/usr/share/locale", language, "LC_MESSAGES").glob("*.mo")):
        try:
            with path.open("rb") as file:
                messages = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # noqa: SLF001
        except (OSError, UnicodeDecodeError, ValueError):
            continue
        yield "\n".join(filter(None, messages.values()))


def write_sources(target: Path, sources: Iterable[tuple[Iterable[str], float]]) -> None:
    """Write (texts, megabytes) one after the other, each text once."""
    seen: set[bytes] = set()
    partial = target.with_suffix(".tmp")
    with partial.open("wb") as file:
        for texts, megabytes in sources:
            room = int(megabytes * 1e6)
            for text in texts:
                data = text.encode("utf-8", "ignore")[:LARGEST]
                data = data.decode("utf-8", "ignore").encode() + b"\n"
                digest = hashlib.sha256(data).digest()
                if digest not in seen:
                    seen.add(digest)
                    file.write(data)
                    room -= len(data)
                if room < 0:
                    break
    partial.replace(target)


def write_english(target: Path) -> None:
    """Technical English from this machine's own files."""
    write_sources(target, ((files_below(Path(root), names), mb) for root, names, mb in ENGLISH))


def write_multilingual(target: Path) -> None:
    """Translated documentation; its packages are unpacked beside the text and not installed."""
    folder = target.parent / "packages"
    folder.mkdir(exist_ok=True)
    for name in PACKAGES:
        if not (folder / name).exists():
            subprocess.run(["apt-get", "download", "-qq", name], cwd=folder, check=True)
            (package,) = folder.glob(f"{name}_*.deb")
            subprocess.run(["dpkg-deb", "-x", package, folder / name], check=True)
    manuals = [(files_below(folder / name, r"/man/|\.(html|txt\.gz)$"), 4.0) for name in PACKAGES]
    installed = files_below(Path("/usr/share/man"), r"/man/(ru|ja|zh_CN|zh_TW|uk|ko)/")
    messages = [(catalogue(language), 0.9) for language in CATALOGUES]
    write_sources(target, [*manuals, (installed, 4.0), *messages])


def write_beginning(size: int, target: Path) -> None:
    """The first `size` bytes of english, to the end of a line."""
    with text_path("english").open("rb") as file:
        target.write_bytes(file.read(size) + file.readline())


def write_vocabulary(text: Path, target: Path) -> None:
    """Train on a text, for the tools to encode it with; `target` is the last file written."""
    tokenizer = Tokenizer.train_files([text], vocab_size=VOCAB_SIZE, pattern="gpt2")
    vocabulary.save(tokenizer, target.parent)


def build() -> None:
    """Make what is not there yet."""
    FOLDER.mkdir(exist_ok=True)
    make(text_path("english"), write_english)
    make(text_path("multilingual"), write_multilingual)
    size = text_path("english").stat().st_size
    for name, length in {
        "english10": 10_000_000,
        "english1": size // 8,
        "english2": size // 4,
        "english4": size // 2,
    }.items():
        make(text_path(name), partial(write_beginning, length), after=text_path("english"))
    for name in ("english", "english10", "multilingual"):
        last = vocabulary_path(name) / vocabulary.TOKENIZER_JSON
        make(last, partial(write_vocabulary, text_path(name)), after=text_path(name))


def make(target: Path, write: Callable[[Path], None], *, after: Path | None = None) -> None:
    """Call `write` unless the file is there, and newer than what it is made `after`."""
    if target.exists() and (after is None or target.stat().st_mtime >= after.stat().st_mtime):
        return
    print(f"makes {target.relative_to(ROOT)}", flush=True)
    write(target)


if __name__ == "__main__":
    build()
