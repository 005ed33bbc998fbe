"""Every exception that bytepair raises on purpose, as one tree.

    BytepairError
    ├── ParamsError        params.yaml: a value is missing, of the wrong type or out of range
    ├── PatternError       a pattern does not compile, or is not known
    ├── TextError          text is not valid UTF-8, or a str holds a lone surrogate
    ├── TrainingError      there is nothing to train on, or the sizes asked for cannot be met
    ├── TokenError         an id or a special token that the tokenizer does not have
    ├── CorpusError        a corpus is not what params.yaml says: markers, headings, ranges, hashes
    ├── FetchError         a corpus could not be had
    └── ArtifactError      a file on disk is damaged, or was made with something else
        └── TokenizerFileError

All but BytepairError and FetchError are also ValueError, so code that knows nothing of bytepair
can catch them.
A message says what happened, shows the offending value, and ends with what to do.
"""


class BytepairError(Exception):
    """Base of every exception raised on purpose; stage scripts print it and exit with 1."""


class ParamsError(BytepairError, ValueError):
    """A value in params.yaml is missing, of the wrong type, or out of range."""


class PatternError(BytepairError, ValueError):
    """A pattern does not compile, means different things on different machines, or is not known."""


class TextError(BytepairError, ValueError):
    """Text is not valid UTF-8 (the message has the byte offset) or holds a lone surrogate."""


class TrainingError(BytepairError, ValueError):
    """There is nothing to train on, or the sizes asked for contradict each other."""


class TokenError(BytepairError, ValueError):
    """An id outside the vocabulary, or a special token that the tokenizer does not have."""


class CorpusError(BytepairError, ValueError):
    """A corpus is not what params.yaml says it is."""


class FetchError(BytepairError):
    """A corpus could not be had from any of its sources."""


class ArtifactError(BytepairError, ValueError):
    """A file on disk is damaged, or was made from something other than what it is used with."""


class TokenizerFileError(ArtifactError):
    """A bpe.json that cannot be trusted; the message names file, field and value."""
