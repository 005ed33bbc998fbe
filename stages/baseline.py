"""baseline: a small language model on the token arrays, standing for every model downstream."""

from bytepair.baseline import run
from bytepair.layout import TokenizerPaths
from bytepair.params import TokenizerParams
from bytepair.stage import tokenizer_stage


@tokenizer_stage
def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Train an n-gram model on the train split and evaluate it on val."""
    settings = tokenizer.baseline
    result = run(paths.tokens, paths.baseline, order=settings.order, max_tokens=settings.max_tokens)
    figure = result.manifest["val"]["bits_per_byte"]
    return f"{tokenizer.name}: order {settings.order}, {figure} bits per byte on val"


if __name__ == "__main__":
    main()
