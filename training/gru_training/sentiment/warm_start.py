"""The settings and rows of text classifiers that begin with the weights of a run.

Without TensorFlow.

A run keeps digests of the texts from which it has learned, so that no later run tests on them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from gru_training.data.label_cells import TargetKind
from gru_training.data.problems import Problems
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.rows import Parts, Row, SentimentRows, text_key
from gru_training.sentiment.run import SentimentRun
from gru_training.warm_start import open_start, with_settings_of

DIGESTS_FILE = "training_texts.npy"
_DIGEST_BYTES = 8
_NETWORK = ("embedding_size", "units", "layers", "bidirectional", "chunk", "pooling", "subwords")
_VECTORS = (
    "unlabelled", "word_vectors", "vector_size", "topic_size", "vector_words", "window", "vectors",
)  # fmt: skip
_ANSWERS: Mapping[TargetKind, str] = {
    "class": "a class",
    "labels": "any number of labels",
    "number": "a number",
}


def starting_run(config: SentimentConfig) -> SentimentRun:
    """Open the run of `--warm-start`.

    Raises:
        TrainingError: There is no complete run of this task.
    """
    assert config.training.warm_start is not None
    return open_start(SentimentRun, "sentiment", config.training.warm_start)


def with_start_settings(config: SentimentConfig, run: SentimentRun) -> SentimentConfig:
    """Take over the settings of network and words that follow from the run.

    Args:
        config: Settings of the training.
        run: The run of `--warm-start`.

    Raises:
        ConfigError: Another value was asked for.
    """
    old = run.config
    agreed = {
        "data": {
            "cleaning": run.cleaned,
            "spacing": run.reading == "spaced",
            "max_tokens": old.data.max_tokens,
        },
        "model": {name: getattr(old.model, name) for name in _NETWORK},
        "pretraining": {name: getattr(old.pretraining, name) for name in _VECTORS},
    }
    return with_settings_of(config, run, agreed)


def with_learned_in_training(
    parts: Parts, source: SentimentRows, config: SentimentConfig, problems: Problems
) -> Parts:
    """Move held-out rows from which the run of `--warm-start` has learned to the training part.

    A row counts as learned if the run knows any text of its group.

    Args:
        parts: Rows as they were split.
        source: Rows before they were split.
        config: Settings of the training.
        problems: Collector of a note on how many rows were moved.

    Raises:
        TrainingError: The run cannot be used, answers something else, or has learned from all rows
            of a part.
    """
    run = starting_run(config)
    if run.kind != source.kind:
        raise ConfigError(
            f"--warm-start: {run.path} answers with {_ANSWERS[run.kind]} for each text, got rows "
            f"with {_ANSWERS[source.kind]} each; leave --warm-start out to train from new weights"
        )
    everything = [row for part in parts for row in part]
    known = is_learned([row.text for row in everything], run)
    texts = {row.text for row, learned in zip(everything, known, strict=True) if learned}
    groups = {row.group for row in everything if row.text in texts} - {None}
    kept, moved = list[list[Row]](), list[Row]()
    for name, part in (("validation", parts.validation), ("test", parts.test)):
        learned = [row for row in part if row.text in texts or row.group in groups]
        kept.append([row for row in part if row.text not in texts and row.group not in groups])
        moved += learned
        if not kept[-1]:
            raise DataError(
                f"--warm-start: expected rows for {name} that {run.path} has not learned from, got "
                f"{len(learned):,} that it has; hold out the rows that it held out, with "
                f"{split_settings(run)}, or add new rows"
            )
    if moved:
        left = " and ".join(
            f"{len(rows):,} for {name}"
            for rows, name in zip(kept, ("validation", "test"), strict=True)
        )
        problems.note(
            f"{len(moved):,} of the {len(parts.validation) + len(parts.test):,} rows to hold out "
            f"are trained on, as {run.path} has learned from them already; {left} are left"
        )
    return Parts([*parts.train, *moved], *kept)


def text_digests(texts: Iterable[str]) -> np.ndarray:
    """Compute one uint64 per text, (N,), equal for texts that differ only in case and blanks."""
    keys = (text_key(text).encode("utf-8", "surrogatepass") for text in texts)
    joined = b"".join(hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest() for key in keys)
    return np.frombuffer(joined, "<u8")


def write_digests(folder: Path, digests: np.ndarray) -> None:
    """Write the digests of the texts from which a run has learned.

    Args:
        folder: The run directory.
        digests: (N,) uint64, in any order; each is kept once.
    """
    np.save(folder / DIGESTS_FILE, np.unique(digests))


def learned_digests(run: SentimentRun) -> np.ndarray:
    """Read the digests of the texts from which a run has learned, (N,) uint64, ascending.

    Raises:
        RunDirectoryError: The file is damaged.
    """
    path = run.path / DIGESTS_FILE
    try:
        return np.asarray(np.load(path, allow_pickle=False), "<u8")
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}") from error


def is_learned(texts: Iterable[str], run: SentimentRun) -> np.ndarray:
    """Mark which of N texts a run has learned from, (N,) bool.

    Raises:
        RunDirectoryError: The run's files are damaged, see `learned_digests`.
    """
    return np.isin(text_digests(texts), learned_digests(run))


def split_settings(run: SentimentRun) -> str:
    """Return the settings of a run's split, as flags."""
    data = run.config.data
    drawn = f"--split-seed {data.drawn_with(run.config.training.seed)}"
    split = drawn if data.fold is None else f"--fold {data.fold}"
    return split if data.data is None else f"--data {data.data} and {split}"
