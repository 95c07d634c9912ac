"""The settings of the sentiment pipeline; see `gru_training.config`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import (
    OptionalFlag,
    OptionalName,
    RunConfig,
    TrainingConfig,
    require_above_zero,
    require_at_least,
    require_rate,
)
from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, Integers, OneOf
from gru_training.sentiment.data_config import PretrainingConfig, SentimentDataConfig

__all__ = [
    "ClassifierConfig",
    "DecisionConfig",
    "PretrainingConfig",
    "SentimentConfig",
    "SentimentDataConfig",
    "SentimentRunConfig",
    "SentimentTrainingConfig",
    "SoftConfig",
]


@dataclass(frozen=True)
class ClassifierConfig:
    """The network: embedding, GRU, pooling over time, dense layer."""

    embedding_size: Annotated[int, Integers(32, 128, 16)] = 64
    """Size of a word vector."""
    units: Annotated[int, Integers(32, 160, 16)] = 64
    """GRU units, per direction."""
    layers: int = 1
    """GRU layers stacked on each other."""
    bidirectional: bool = True
    """Read the text in both directions; a one-directional model can answer word by word."""
    chunk: Annotated[int | None, tyro.conf.arg(metavar="WORDS")] = None
    """Read texts longer than this in adjoining chunks, all at once, and pool over all of them;
    default: from the beginning to the end."""
    pooling: Annotated[
        Literal["max", "mean", "attention", "last"], OneOf(("max", "mean", "attention"))
    ] = "max"
    """How the states are pooled: maximum or mean per unit, mean by learned scores, or the last."""
    dropout: Annotated[float, Floats(0.2, 0.7)] = 0.5
    """Share of word-vector and pooled features dropped while training."""
    variational: bool = False
    """Drop the same word-vector features at every word of a text (Gal and Ghahramani, 2016)."""
    recurrent_dropout: float = 0.0
    """Share of the state's features dropped on their way to the next step while training."""
    word_dropout: Annotated[float, Floats(0.0, 0.4)] = 0.25
    """Share of words read as unknown while training."""
    subwords: Annotated[bool, OneOf((False, True))] = False
    """Add to each learned word vector those of the word's pieces of 3 to 5 letters."""
    word_ratios: Annotated[bool, OneOf((False, True))] = False
    """Initialise learned word vectors with how much more often a word occurs in a class."""
    ngrams: OptionalFlag = None
    """Combine the GRU with a regression on NB-weighted n-grams; default: for files of your own, if
    the network reads in both directions."""
    ngram_order: Literal[2, 3] = 2
    """Words in the longest n-grams: single words and pairs, or also triples that stand in two or
    more of the training texts."""

    def __post_init__(self) -> None:
        require_at_least("--embedding-size", self.embedding_size, 1)
        require_at_least("--units", self.units, 1)
        require_at_least("--layers", self.layers, 1)
        if self.chunk is not None:
            require_at_least("--chunk", self.chunk, 2)
        require_rate("--dropout", self.dropout)
        require_rate("--recurrent-dropout", self.recurrent_dropout)
        require_rate("--word-dropout", self.word_dropout)


@dataclass(frozen=True)
class DecisionConfig:
    """How probabilities become answers; all of it is kept in the run and in its exports."""

    costs: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """JSON file with the cost of answers, such as {"true class": {"answer": 5}}; others cost 1. The
    answer with the least expected cost is given."""
    target_precision: Annotated[tuple[str, ...], tyro.conf.arg(metavar="CLASS=SHARE")] = ()
    """Answer a class only from the probability at which this share of the validation rows with that
    answer is right, such as spam=0.95."""


@dataclass(frozen=True)
class SoftConfig:
    """Texts whose targets are probabilities, which are learned beside the labels."""

    soft_data: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Also learn this table of texts with a probability for each class, in columns called as the
    classes, as `gru-train predict` writes them, or as JSON objects in one column."""
    soft_column: OptionalName = None
    """Column of that table with JSON objects; default: probabilities, if it has no columns called
    as the classes."""
    soft_rows: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Read so many of its rows in each epoch, drawn anew; default: twice as many as there are
    labelled rows."""
    soft_weight: float = 1.0
    """Weight of such a row in the loss; a labelled row weighs 1."""
    soft_temperature: float = 1.0
    """Temperature at which probabilities and answers are compared; above 1 small probabilities
    count more."""

    def __post_init__(self) -> None:
        if self.soft_rows is not None:
            require_at_least("--soft-rows", self.soft_rows, 1)
        require_above_zero("--soft-weight", self.soft_weight)
        require_above_zero("--soft-temperature", self.soft_temperature)

    def read_rows(self, labelled: int) -> int:
        """Count the rows that an epoch reads at most, beside so many labelled ones."""
        return 2 * labelled if self.soft_rows is None else self.soft_rows


@dataclass(frozen=True)
class SentimentTrainingConfig(TrainingConfig):
    """How the weights are found: Adam, clipped gradients, early stopping."""

    epochs: int = 15
    """Maximum number of passes over the training rows."""
    patience: int = 4
    """Stop after this many epochs without a better validation accuracy."""
    learning_rate: Annotated[float, Floats(5e-4, 1e-2, log=True)] = 2e-3
    """Adam's step size."""
    class_weight: Annotated[str | None, tyro.conf.arg(metavar="balanced|none|FILE")] = None
    """How much rows of each class count: balanced for all classes the same in sum, none for all
    rows the same, or a weight for each as JSON, such as {"spam": 3}, or a file of it. Default:
    none; balanced, with --metric macro_f1, if a class of your own file has ten times the rows of
    another."""
    balanced_batches: bool = False
    """Draw the rows of each epoch so that all classes are equally frequent, in place of every row
    once."""
    metric: OptionalName = None
    """What epoch, penalties and combination are chosen by: accuracy, balanced_accuracy, macro_f1,
    weighted_f1, log_loss, average_precision, f1:CLASS; of several labels micro_f1, macro_f1,
    exact_match, log_loss, average_precision, f1:LABEL; of a number mae, rmse. Default: accuracy,
    micro_f1, mae."""
    warm_start: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Begin with the vocabulary and the weights of this run, whose sizes the network has. Rows that
    the run has learned from are not held out."""
    sparse_updates: bool = False
    """In each step, move the vectors of the batch's words only (lazy Adam): faster with a large
    vocabulary, and on small data less accurate."""
    seed: int = 0
    """Seed of the initial weights, dropout and shuffling; without --split-seed also of generated
    reviews and of the split."""


@dataclass(frozen=True)
class SentimentRunConfig(RunConfig):
    """Where the result goes and what is reported beside it."""

    ngram_baseline: bool = False
    """Also fit naive Bayes and a logistic regression on NB-weighted n-grams (Wang and Manning,
    2012)."""


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

    preset: OptionalName = None
    """Start from the settings of this name, such as mr or imdb of the results table; other flags
    override them."""
    data: SentimentDataConfig = field(default_factory=SentimentDataConfig)
    """What to learn from."""
    pretraining: PretrainingConfig = field(default_factory=PretrainingConfig)
    """What was learned from texts without their labels, before training."""
    soft: SoftConfig = field(default_factory=SoftConfig)
    """Texts whose targets are probabilities, which are learned beside the labels."""
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    """The network: embedding, GRU, pooling over time, dense layer."""
    decision: DecisionConfig = field(default_factory=DecisionConfig)
    """How probabilities become answers."""
    training: SentimentTrainingConfig = field(default_factory=SentimentTrainingConfig)
    """How the weights are found: Adam, clipped gradients, early stopping."""
    run: SentimentRunConfig = field(default_factory=SentimentRunConfig)
    """Where the result goes and what is reported beside it."""

    def __post_init__(self) -> None:
        if self.data.pieces is not None:
            self._check_marks("--pieces")
            if self.model.subwords:
                raise ConfigError("--pieces excludes --subwords, which is for whole words")
        if self.data.spacing:
            self._check_marks("--spacing")
        if self.training.warm_start is not None and self.model.word_ratios:
            raise ConfigError(
                "--warm-start excludes --word-ratios: word vectors begin as those of the run"
            )

    def _check_marks(self, flag: str) -> None:
        """Refuse what a setting excludes whose tokens are no plain words."""
        if self.pretraining.wanted:
            raise ConfigError(
                f"{flag} excludes --vectors, --unlabelled and --word-vectors, which are of words"
            )
        if not self.model.bidirectional:
            raise ConfigError(
                f"{flag} needs --bidirectional: a model in one direction answers word by word"
            )
