"""Divide clean.txt into documents, and the documents into train, val and test."""

from bytepair.corpora.records import CLEAN
from bytepair.corpora.split import split_file
from bytepair.layout import CorpusPaths
from bytepair.params import HeadingSplit
from bytepair.patience import Watch
from bytepair.shard_params import ShardedCorpusParams
from bytepair.stage import Corpus, corpus_stage


@corpus_stage
def main(corpus: Corpus, paths: CorpusPaths) -> str:
    """Split a corpus by its headings, by ranges of characters, or shards by a hash."""
    if isinstance(corpus, ShardedCorpusParams):
        from bytepair.shards.stages import split_shards

        return split_shards(corpus, paths)
    with Watch(corpus.split.pattern if isinstance(corpus.split, HeadingSplit) else None) as watch:
        watch.begin(CLEAN)
        result = split_file(paths.clean, paths.splits, corpus.split)
    parts = [
        f"{name} {len(joined.text):,} bytes (documents: {len(joined.documents)})"
        for name, joined in result.splits.items()
    ]
    dropped = sum(span.end - span.start for span in result.dropped)
    return f"{corpus.name}: {', '.join(parts)}; {dropped:,} bytes dropped"


if __name__ == "__main__":
    main()
