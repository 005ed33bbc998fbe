"""What the scripts in stages/ share: one argument, params.yaml, one line of result, exit codes.

    @tokenizer_stage
    def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
        '''Count the chunks of the train split.'''
        ...
        return f"{tokenizer.name}: 112,090 chunks, 9,756 distinct"

A stage exits with 0, with 1 after `Error: ...` (a BytepairError, or the system refused a file), or
with 2 if it was called wrongly; patience.py ends one by a signal, after `Error: ...` too. Any other
exception is a bug, and keeps its traceback.
"""

from __future__ import annotations

import functools
import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import click

from bytepair.errors import BytepairError
from bytepair.layout import CorpusPaths, TokenizerPaths
from bytepair.params import CorpusParams, TokenizerParams, load_corpus, load_tokenizer
from bytepair.shard_params import ShardedCorpusParams, is_sharded, load_sharded_corpus

Options = ParamSpec("Options")
Corpus = CorpusParams | ShardedCorpusParams


def corpus_stage(
    main: Callable[Concatenate[Corpus, CorpusPaths, Options], str],
) -> click.Command:
    """Make a command of `main`, whose argument is a corpus's name.

    Click options placed below the decorator reach `main` as keyword arguments.
    """
    return _command(main, _load_corpus, CorpusPaths)


def tokenizer_stage(
    main: Callable[Concatenate[TokenizerParams, TokenizerPaths, Options], str],
) -> click.Command:
    """Make a command of `main`, whose argument is a tokenizer's name; see corpus_stage."""
    return _command(main, load_tokenizer, TokenizerPaths)


def _load_corpus(path: str, name: str) -> Corpus:
    return load_sharded_corpus(path, name) if is_sharded(path, name) else load_corpus(path, name)


class _StageCommand(click.Command):
    def main(self, *args: Any, **kwargs: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a token may be what the locale cannot show
                stream.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            # Ours are part of the result: shown every time, and no reason to fail.
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = functools.partial(_show_warning, warnings.showwarning)
            return super().main(*args, **kwargs)


def _command(
    main: Callable[..., str],
    load: Callable[[str, str], Any],
    paths: Callable[[Path, str], Any],
) -> click.Command:
    @click.command(cls=_StageCommand)
    @click.argument("name")
    @functools.wraps(main)
    def command(name: str, **options: Any) -> None:
        try:
            result = main(load("params.yaml", name), paths(Path(), name), **options)
        except BytepairError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            where = name if error.filename is None else error.filename
            raise click.ClickException(f"{where}: {error.strerror or error}") from error
        click.echo(result)

    return command


def _show_warning(
    show_other: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any
) -> None:
    if issubclass(category, UserWarning):
        click.echo(f"Warning: {' '.join(str(message).splitlines())}", err=True)
    else:
        show_other(message, category, *where)
