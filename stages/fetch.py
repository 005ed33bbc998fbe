"""Have a corpus's raw.txt on disk, with bytes that the pins in params.yaml allow."""

import os
from pathlib import Path

import click

from bytepair.corpora.fetch import fetch
from bytepair.layout import CorpusPaths
from bytepair.shard_params import ShardedCorpusParams
from bytepair.stage import Corpus, corpus_stage


@corpus_stage
@click.option("--force", is_flag=True, help="Take a new text whatever the pins; print its pins.")
def main(corpus: Corpus, paths: CorpusPaths, *, force: bool) -> str:
    """Retrieve a corpus, from CORPUS_CACHE or its sources, unless raw.txt is good already.

    Of a corpus of shards, record which there are and what they hold.
    """
    if isinstance(corpus, ShardedCorpusParams):
        from bytepair.shards.stages import fetch_shards

        return fetch_shards(corpus, paths)
    cache = os.environ.get("CORPUS_CACHE")
    found = fetch(
        corpus.fetch,
        corpus.strip,
        paths.raw,
        root=paths.root,
        cache=Path(cache) if cache else None,
        force=force,
    )
    how = "kept" if found.origin is None else f"retrieved from {found.origin}"
    line = f"{corpus.name}: {how}, {found.raw.size:,} bytes, {found.clean.size:,} when stripped"
    return f"{line}\n{found.pins}" if force else line


if __name__ == "__main__":
    main()
