"""Tokens per second of the language model's training, beside the same loop with Keras' GRU.

    python -m benchmarks.language

One model each, of the same sizes, in float32, with the same optimizer, clipping, dropout, softmax
and batches; one has `keras_gru.GRU`, the other `keras.layers.GRU`. After three steps of warm-up,
which compile, they take turns, some steps each, in every other round in reverse order; the ratio is
that of the tokens per second of one round, of which the median is shown with the least and the
greatest. Token ids are drawn by Zipf's law: what they are does not matter here.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from gru_training.language.batches import ChunkBatch, DocumentChunks
from gru_training.language.model import LanguageModel
from gru_training.language.training import carried_states, make_train_step
from gru_training.loop.optimizers import SparseAdam

OURS, THEIRS = "keras_gru.GRU", "keras.layers.GRU"


class Sizes(NamedTuple):
    """Of a model and its batches."""

    vocabulary: int
    embedding: int
    units: int
    layers: int
    rows: int
    steps: int
    samples: int


SIZES = {
    "characters": Sizes(106, 128, 512, 1, 32, 128, 0),
    "words": Sizes(30_000, 256, 512, 1, 64, 64, 1024),
}
"""Those of the presets `characters` and `imdb`."""


class WithKerasGRU(LanguageModel):
    """The same model with the layer of Keras."""

    def make_gru(self, name: str) -> Any:
        """As of the base class."""
        return keras.layers.GRU(self.units, return_sequences=True, return_state=True, name=name)


def trainer(kind: type[LanguageModel], sizes: Sizes) -> Callable[[ChunkBatch], None]:
    """Takes a step on a batch, and waits for its end."""
    keras.utils.set_random_seed(0)
    model = kind(sizes.vocabulary, sizes.embedding, sizes.units, sizes.layers, dropout=0.2)
    step = make_train_step(
        model,
        SparseAdam(1e-3),
        carried_states(model, sizes.rows),
        clip_norm=1.0,
        samples=sizes.samples,
        seed=0,
    )

    def train(batch: ChunkBatch) -> None:
        float(step(*batch)["loss"])

    return train


def made_up(sizes: Sizes, count: int) -> list[ChunkBatch]:
    """Full batches."""
    rng = np.random.default_rng(0)
    length = sizes.steps * count
    ids = np.minimum(rng.zipf(1.2, (sizes.rows, length - 1)), sizes.vocabulary - 3) + 2
    return list(DocumentChunks(list(ids.astype(np.int32)), sizes.rows, sizes.steps))


def contest(sizes: Sizes, rounds: int, steps: int) -> dict[str, list[float]]:
    """Tokens per second in each round, by layer."""
    batches = made_up(sizes, steps)
    contenders = {OURS: trainer(LanguageModel, sizes), THEIRS: trainer(WithKerasGRU, sizes)}
    for train in contenders.values():
        for batch in batches[:3]:
            train(batch)
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders.items())[:: -1 if number % 2 else 1]
        for name, train in order:
            started = time.perf_counter()
            for batch in batches:
                train(batch)
            tokens = sum(len(batch.targets) for batch in batches)
            found[name].append(tokens / (time.perf_counter() - started))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a row for each size."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=6, help="of a round (default: 6)")
    chosen = parser.parse_args(arguments)
    print(f"| sizes | {OURS}, tokens/s | {THEIRS} | ratio (least, greatest) |")
    print("|---|---:|---:|---:|")
    for name in chosen.sizes:
        found = contest(SIZES[name], chosen.rounds, chosen.steps)
        ratios = [own / other for own, other in zip(found[OURS], found[THEIRS], strict=True)]
        medians = [f"{statistics.median(rates):,.0f}" for rates in found.values()]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}, {max(ratios):.2f})"
        print(f"| {name} | {medians[0]} | {medians[1]} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
