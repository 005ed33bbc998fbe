"""A stage with a model of your own, here a bigram model in PyTorch; see docs/own-model.md.

    python examples/torch_stage.py NAME        # a block under `models` in params.yaml

`backend: numpy` is the same model without PyTorch, so that the stage runs anywhere. Put your
model in the place of both classes; what stands below them is what makes it a stage.
"""

import io
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from bytepair import BytepairError, Tokenizer, files
from bytepair.comparison import cost_by_block
from bytepair.layout import TokenizerPaths
from bytepair.tokens import Ids, check_tokenizer, open_tokens
from bytepair.yaml_strict import load_yaml

Arrays = dict[str, NDArray[Any]]


class TorchModel:
    """Predicts an id from the one before it: an embedding and a linear layer."""

    def __init__(self, vocab_size: int, *, width: int, rate: float, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)  # one thread always adds in the same order
        self.torch = torch
        self.layers = torch.nn.Sequential(
            torch.nn.Embedding(vocab_size, width), torch.nn.Linear(width, vocab_size, bias=False)
        )
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=rate)

    def learn(self, before: Ids, after: Ids) -> None:
        self.optimizer.zero_grad()
        self._losses(before, after).mean().backward()
        self.optimizer.step()

    def nats(self, before: Ids, after: Ids) -> NDArray[Any]:
        with self.torch.no_grad():
            return self._losses(before, after).numpy()

    def weights(self) -> Arrays:
        return {name: values.numpy() for name, values in self.layers.state_dict().items()}

    def _losses(self, before: Ids, after: Ids) -> Any:
        before, after = (self.torch.from_numpy(ids.astype(np.int64)) for ids in (before, after))
        return self.torch.nn.functional.cross_entropy(self.layers(before), after, reduction="none")


class NumpyModel:
    """The same, with the gradients written out."""

    def __init__(self, vocab_size: int, *, width: int, rate: float, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.embedding = random.normal(size=(vocab_size, width))
        self.linear = random.normal(size=(width, vocab_size)) / width
        self.rate = rate

    def learn(self, before: Ids, after: Ids) -> None:
        hidden, errors = self.embedding[before], self._probabilities(before)
        errors[np.arange(len(after)), after] -= 1
        errors *= self.rate / len(after)
        np.subtract.at(self.embedding, before, errors @ self.linear.T)
        self.linear -= hidden.T @ errors

    def nats(self, before: Ids, after: Ids) -> NDArray[Any]:
        return -np.log(self._probabilities(before)[np.arange(len(after)), after])

    def weights(self) -> Arrays:
        return {"embedding": self.embedding, "linear": self.linear}

    def _probabilities(self, before: Ids) -> NDArray[Any]:
        scores = self.embedding[before] @ self.linear
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)


BACKENDS = {"torch": TorchModel, "numpy": NumpyModel}


def load(folder: Path, tok: Tokenizer) -> Arrays:
    """Read a model's weights; with another tokenizer than its own that is an ArtifactError."""
    path = folder / "manifest.json"
    manifest = files.read_record(path)
    check_tokenizer(path, manifest["tokenizer_sha256"], tok.sha256, stage="model")
    weights = files.read_verified(folder / "weights.npz", manifest["weights_sha256"])
    with np.load(io.BytesIO(weights)) as arrays:
        return dict(arrays)


def run(name: str) -> str:
    """Train on train, evaluate on val, write weights, manifest and metrics."""
    settings = load_yaml("params.yaml")["models"][name]
    paths = TokenizerPaths(Path(), settings["tokenizer"])
    tok = Tokenizer.load(paths.bpe)
    train, val = (
        open_tokens(paths.tokens / split, tokenizer_sha256=tok.sha256) for split in ("train", "val")
    )

    options = {key: settings[key] for key in ("width", "rate", "seed")}
    model = BACKENDS[settings["backend"]](tok.vocab_size, **options)
    random = np.random.default_rng(settings["seed"])
    for _ in range(settings["steps"]):
        at = random.integers(1, len(train), settings["batch"])
        model.learn(train.ids[at - 1], train.ids[at])

    # The first id has none before it, and is charged as if all were equally likely.
    nats = np.append(np.log(tok.vocab_size), model.nats(val.ids[:-1], val.ids[1:]))
    costs = cost_by_block(val, nats / np.log(2), tok.vocab)

    buffer = io.BytesIO()
    np.savez(buffer, **model.weights())
    folder = Path("data/models") / name
    files.write_bytes(folder / "weights.npz", buffer.getvalue())
    manifest = {
        "tokenizer_sha256": tok.sha256,
        "train_tokens_sha256": train.index.tokens_sha256,
        "val_tokens_sha256": val.index.tokens_sha256,
        "weights_sha256": files.sha256(buffer.getvalue()),
        "val_cost": costs.record(),
    }
    files.write_record(folder / "manifest.json", manifest)
    figure = costs.estimate().value
    files.write_json(f"metrics/models/{name}.json", {"val": {"bits_per_byte": figure}})
    return f"{name}: {settings['backend']}, {figure} bits per byte on val"


@click.command()
@click.argument("name")
def main(name: str) -> None:
    try:
        click.echo(run(name))
    except BytepairError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
