"""encode-splits: the documents of every split as arrays of ids."""

import shutil

from bytepair.corpora.documents import has_split, read_split
from bytepair.errors import ArtifactError
from bytepair.layout import RULE, SPLITS, CorpusPaths, TokenizerPaths
from bytepair.params import TokenizerParams
from bytepair.patience import Watch
from bytepair.patterns import Pattern
from bytepair.stage import tokenizer_stage
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import write_tokens


@tokenizer_stage
def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Encode the documents of every split, with the separator's id between them."""
    choice, special_tokens = tokenizer.chunks.pattern, tokenizer.chunks.special_tokens
    trained = Tokenizer.load(paths.bpe)
    pattern = Pattern.chosen(choice, tokenizer.pattern_key)
    if (pattern, special_tokens) != (trained.pattern, tuple(trained.special_tokens)):
        raise ArtifactError(f"{paths.bpe}: not made by these `chunks`. Run `dvc repro`.")
    splits = CorpusPaths(paths.root, tokenizer.corpus).splits
    if (splits / "train" / RULE).is_file():
        from bytepair.shards.stages import encode_shards

        return encode_shards(tokenizer, paths)
    separator_id = trained.special_tokens.get(tokenizer.encode.separator or "")
    lengths = []
    with Watch(choice.regex if choice else None) as watch:
        for name in SPLITS:
            if not has_split(splits, name):
                if (paths.tokens / name).exists():
                    shutil.rmtree(paths.tokens / name)
                continue
            split = read_split(splits / name)
            index = write_tokens(
                paths.tokens / name,
                ((doc.name, trained.encode_array(doc.text)) for doc in watch.over(split.documents)),
                vocab_size=trained.vocab_size,
                separator_id=separator_id,
                tokenizer_sha256=trained.sha256,
                text_sha256=split.sha256,
                text_bytes=split.size,
                separator_bytes=len(split.separator.encode()),
            )
            if name != "test":  # looked at in the end, and only where params say so
                lengths.append(f"{name} {index.length:,}")
    return f"{tokenizer.name}: tokens: {', '.join(lengths)}"


if __name__ == "__main__":
    main()
