"""measure: the figures to judge a tokenizer by."""

from bytepair.baseline import load_baseline
from bytepair.files import write_json
from bytepair.layout import SPLITS, TokenizerPaths
from bytepair.metrics import measure, report
from bytepair.params import TokenizerParams
from bytepair.stage import tokenizer_stage
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import open_tokens


@tokenizer_stage
def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Count bytes, tokens and unused ids, and check that the token arrays add up to the text."""
    trained = Tokenizer.load(paths.bpe)
    splits = {
        name: open_tokens(paths.tokens / name, tokenizer_sha256=trained.sha256)
        for name in SPLITS
        if (paths.tokens / name).is_dir()
    }
    show_test = tokenizer.report.test
    baseline = load_baseline(paths.baseline, tokenizer_sha256=trained.sha256)
    figures = measure(
        splits,
        trained.vocab,
        requested=tokenizer.train.vocab_size,
        show_test=show_test,
        baseline=baseline,
    )
    write_json(
        paths.measures,
        report(
            splits,
            trained.vocab,
            special_ids=trained.special_tokens.values(),
            show_test=show_test,
            baseline=baseline,
        ),
    )
    write_json(paths.metrics, figures)
    shown = "val" if "val" in figures else "train"
    return f"{tokenizer.name}: {figures[shown]['bytes_per_token']} bytes/token on {shown}"


if __name__ == "__main__":
    main()
