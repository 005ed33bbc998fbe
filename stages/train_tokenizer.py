"""train-tokenizer: from chunk counts to bpe.json."""

from bytepair.counts import ChunkCounts
from bytepair.files import write_json
from bytepair.layout import TokenizerPaths
from bytepair.params import TokenizerParams
from bytepair.patterns import Pattern
from bytepair.stage import tokenizer_stage
from bytepair.tokenizer import Tokenizer


@tokenizer_stage
def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Train a tokenizer on the chunk counts of the train split."""
    counts = ChunkCounts.load(paths.counts)
    pattern = Pattern.chosen(tokenizer.chunks.pattern, tokenizer.pattern_key)
    counts.check_made_with(pattern, tokenizer.chunks.special_tokens)
    trained, trace = Tokenizer.trace_from_counts(
        counts, vocab_size=tokenizer.train.vocab_size, min_count=tokenizer.train.min_count
    )
    write_json(paths.training_curve, trace.curve())
    trained.save(paths.bpe)
    return f"{tokenizer.name}: {trained.vocab_size} ids, sha256 {trained.sha256}"


if __name__ == "__main__":
    main()
