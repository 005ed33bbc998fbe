"""Cut raw.txt down to the text between its markers: clean.txt."""

from bytepair.corpora.strip import strip_file
from bytepair.layout import CorpusPaths
from bytepair.shard_params import ShardedCorpusParams
from bytepair.stage import Corpus, corpus_stage


@corpus_stage
def main(corpus: Corpus, paths: CorpusPaths) -> str:
    """Strip a corpus of what its publisher put around it."""
    if isinstance(corpus, ShardedCorpusParams):
        from bytepair.shards.stages import strip_shards

        return strip_shards(corpus, paths)
    stripped = strip_file(paths.raw, paths.clean, corpus.strip)
    after = "the beginning" if stripped.start_line is None else f"line {stripped.start_line}"
    before = "the end" if stripped.end_line is None else f"line {stripped.end_line}"
    return f"{corpus.name}: {len(stripped.text):,} bytes, from {after} to {before}"


if __name__ == "__main__":
    main()
