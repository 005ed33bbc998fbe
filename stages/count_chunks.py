"""count-chunks: cut the train split into chunks and count them."""

from bytepair.corpora.documents import read_split
from bytepair.counts import ChunkCounts
from bytepair.layout import RULE, CorpusPaths, TokenizerPaths
from bytepair.params import TokenizerParams
from bytepair.patience import Watch
from bytepair.patterns import Pattern
from bytepair.stage import tokenizer_stage


@tokenizer_stage
def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Cut the train split into chunks and count them."""
    split = CorpusPaths(paths.root, tokenizer.corpus).splits / "train"
    if (split / RULE).is_file():
        from bytepair.shards.stages import count_shards

        return count_shards(tokenizer, paths)
    choice = tokenizer.chunks.pattern
    train = read_split(split)
    with Watch(choice.regex if choice else None) as watch:
        counts = ChunkCounts.count(
            (document.text for document in watch.over(train.documents)),
            pattern=Pattern.chosen(choice, tokenizer.pattern_key),
            special_tokens=tokenizer.chunks.special_tokens,
            train_sha256=train.sha256,
        )
    counts.save(paths.counts)
    return (
        f"{tokenizer.name}: {counts.total:,} chunks, {len(counts.counts):,} distinct, "
        f"cut by {counts.pattern.regex!r}"
    )


if __name__ == "__main__":
    main()
