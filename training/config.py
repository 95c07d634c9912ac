"""Everything that may differ between two runs, as frozen dataclasses, one per concern.

The command line is generated from these classes (a field's docstring is its help text), and
:func:`to_dict` and :func:`from_dict` carry them through ``config.json``. Values discovered from
the data (the vocabulary, the classes) belong to the run directory, not here.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro

from training.errors import ConfigError

ConfigT = TypeVar("ConfigT")
_OptionalName = Annotated[str | None, tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class DataConfig:
    """What to learn from."""

    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Folder of a known data set, or your .csv, .tsv or .jsonl (.gz); default: made-up reviews."""
    text_column: _OptionalName = None
    """Column with the text; found by itself when called text, sentence, review, ..."""
    label_column: _OptionalName = None
    """Column with the label; found by itself when called label, sentiment, class, ..."""
    phrases: bool = False
    """SST-2 only: train on the 67,349 labelled phrases instead of the 6,920 sentences."""
    reviews: int = 6000
    """How many reviews to make up."""
    validation_fraction: float = 0.1
    """Share of the rows held out for choosing the best epoch, where no split is official."""
    test_fraction: float = 0.1
    """Share of the rows held out for the final test, where no split is official."""
    max_vocabulary: int = 20000
    """Words kept, the most frequent first; all others are read as unknown."""
    min_count: int = 1
    """Words seen less often in the training texts are read as unknown."""
    max_tokens: int = 400
    """Of longer texts the last so many tokens are read."""

    def __post_init__(self) -> None:
        if not 100 <= self.reviews <= 1_000_000:
            raise ConfigError(f"--reviews must be 100 to 1000000, got {self.reviews}")
        _at_least("--max-vocabulary", self.max_vocabulary, 1)
        _at_least("--min-count", self.min_count, 1)
        _at_least("--max-tokens", self.max_tokens, 1)
        for flag, fraction in (
            ("--validation-fraction", self.validation_fraction),
            ("--test-fraction", self.test_fraction),
        ):
            if not 0 < fraction < 1:
                raise ConfigError(f"{flag} must lie between 0 and 1, got {fraction}")
        if self.validation_fraction + self.test_fraction >= 1:
            raise ConfigError(
                "--validation-fraction and --test-fraction must leave something to train on, got "
                f"{self.validation_fraction} + {self.test_fraction}"
            )
        if self.data is None and (self.text_column or self.label_column or self.phrases):
            raise ConfigError("--text-column, --label-column and --phrases need --data")


@dataclass(frozen=True)
class ModelConfig:
    """The network: embedding, GRU, max pooling over time, dense layer."""

    embedding_size: int = 64
    """Size of a word vector."""
    units: int = 64
    """GRU units, per direction."""
    layers: int = 1
    """GRU layers stacked on each other."""
    bidirectional: bool = True
    """Read the text in both directions; a one-directional model can answer word by word."""
    dropout: float = 0.5
    """Share of word-vector and pooled features dropped while training."""
    word_dropout: float = 0.25
    """Share of words read as unknown while training."""

    def __post_init__(self) -> None:
        _at_least("--embedding-size", self.embedding_size, 1)
        _at_least("--units", self.units, 1)
        _at_least("--layers", self.layers, 1)
        for flag, rate in (("--dropout", self.dropout), ("--word-dropout", self.word_dropout)):
            if not 0 <= rate < 1:
                raise ConfigError(f"{flag} must be at least 0 and below 1, got {rate}")


@dataclass(frozen=True)
class TrainingConfig:
    """How the weights are found: Adam, clipped gradients, early stopping."""

    epochs: int = 15
    """Most passes over the training rows."""
    patience: int = 4
    """Stop after so many epochs without a better validation accuracy."""
    batch_size: int = 64
    """Rows per step."""
    learning_rate: float = 2e-3
    """Adam's step size."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Keep the learning rate, or let it fall to zero over --epochs along half a cosine."""
    clip_norm: float = 1.0
    """Longest gradient, as global norm over all weights; longer ones are scaled down."""
    seed: int = 0
    """Seed of the made-up reviews, the split, the initial weights, dropout and shuffling."""

    def __post_init__(self) -> None:
        _at_least("--epochs", self.epochs, 1)
        _at_least("--patience", self.patience, 1)
        _at_least("--batch-size", self.batch_size, 1)
        _above_zero("--learning-rate", self.learning_rate)
        _above_zero("--clip-norm", self.clip_norm)
        if not 0 <= self.seed < 2**32:
            raise ConfigError(f"--seed must be at least 0 and below 2^32, got {self.seed}")


@dataclass(frozen=True)
class RunConfig:
    """Where the result goes and what is reported beside it."""

    runs_dir: Path = Path("runs")
    """Folder of the run directories; made when absent."""
    name: _OptionalName = None
    """Name of the run directory, which must be new; the default is made of data and time."""
    ngram_baseline: bool = False
    """Also fit a logistic regression on NB-weighted uni- and bigrams (Wang and Manning, 2012)."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""

    def __post_init__(self) -> None:
        if self.name is not None and (
            not self.name
            or "\0" in self.name
            or self.name.startswith(".")
            or Path(self.name).name != self.name
        ):
            raise ConfigError(
                f"--name must be a plain name without slashes or leading dot, got {self.name!r}"
            )


@dataclass(frozen=True)
class SentimentConfig:
    """Train a GRU text classifier and write a run directory.

    Without --data it learns from generated film reviews in which word order decides, in less
    than a minute on two cores. With --data it reads a folder holding MR (rt-polarity.pos,
    rt-polarity.neg), SST-2 (stsa.binary.*.txt), IMDB (imdb_train.tsv.gz, imdb_test.tsv.gz) or
    the UCI sentences (*_labelled.txt), or your own CSV, TSV or JSONL file with two or more
    classes.
    Ctrl-C ends training and keeps the best epoch so far.
    """

    data: DataConfig = field(default_factory=DataConfig)
    """What to learn from."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The network: embedding, GRU, max pooling over time, dense layer."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """How the weights are found: Adam, clipped gradients, early stopping."""
    run: RunConfig = field(default_factory=RunConfig)
    """Where the result goes and what is reported beside it."""


def to_dict(config: Any) -> dict[str, Any]:
    """A config dataclass as nested dicts of JSON values."""
    return {f.name: _to_json(getattr(config, f.name)) for f in dataclasses.fields(config)}


def from_dict(cls: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """The inverse of :func:`to_dict`; absent fields take their defaults.

    Raises:
        ConfigError: an unknown field, or a value of the wrong type or out of range.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{cls.__name__} must be an object, got {values!r}")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise ConfigError(f"{cls.__name__} has no field {unknown[0]!r}; it has {sorted(hints)}")
    return cls(**{name: _from_json(name, hints[name], value) for name, value in values.items()})


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    return str(value) if isinstance(value, Path) else value


def _from_json(name: str, hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_dict(typing.cast(type, hint), value)
    if typing.get_origin(hint) is Literal:
        if value in typing.get_args(hint):
            return value
        raise ConfigError(f"{name} must be one of {typing.get_args(hint)}, got {value!r}")
    allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in allowed:
        return None
    if Path in allowed and isinstance(value, str):
        return Path(value)
    if float in allowed and type(value) is int:
        return float(value)
    if type(value) in allowed:
        return value
    expected = " or ".join(kind.__name__ for kind in allowed)
    raise ConfigError(f"{name} must be {expected}, got {value!r}")


def _at_least(flag: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{flag} must be at least {least}, got {value}")


def _above_zero(flag: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{flag} must be a finite number above 0, got {value}")
