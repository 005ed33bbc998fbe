"""Cut raw.txt down to the text between its markers: clean.txt."""

from bytepair.corpora.strip import strip_file
from bytepair.layout import CorpusPaths
from bytepair.params import CorpusParams
from bytepair.stage import corpus_stage


@corpus_stage
def main(corpus: CorpusParams, paths: CorpusPaths) -> str:
    """Strip a corpus of what its publisher put around it."""
    stripped = strip_file(paths.raw, paths.clean, corpus.strip)
    after = "the beginning" if stripped.start_line is None else f"line {stripped.start_line}"
    before = "the end" if stripped.end_line is None else f"line {stripped.end_line}"
    return f"{corpus.name}: {len(stripped.text):,} bytes, from {after} to {before}"


if __name__ == "__main__":
    main()
