"""The settings of the sentiment pipeline; see `training.config`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from training.config import (
    OptionalName,
    RunConfig,
    TrainingConfig,
    require_at_least,
    require_rate,
    require_split,
)
from training.errors import ConfigError


@dataclass(frozen=True)
class SentimentDataConfig:
    """What to learn from."""

    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Folder of a known set, or your .csv, .tsv or .jsonl (.gz); default: generated reviews."""
    text_column: OptionalName = None
    """Column with the text; detected if called text, sentence, review, ..."""
    label_column: OptionalName = None
    """Column with the label; detected if called label, sentiment, class, ..."""
    drop_bad: bool = False
    """Leave out rows of your file that cannot be used: without text or label, or malformed."""
    drop_duplicates: bool = False
    """Keep the first row of each text, and none of texts with more than one label."""
    drop_small_classes: bool = False
    """Leave out classes with fewer than three rows."""
    merge_labels: bool = False
    """Make one class of labels that differ in case, blanks or the form of a number only."""
    phrases: bool = False
    """SST-2 only: train on the 67,349 labelled phrases instead of the 6,920 sentences."""
    reviews: int = 6000
    """Number of reviews to generate."""
    validation_fraction: float = 0.1
    """Share of the rows held out for choosing the best epoch, if there is no official split."""
    test_fraction: float = 0.1
    """Share of the rows held out for the final test, if there is no official split."""
    fold: Annotated[int | None, tyro.conf.arg(metavar="0..9")] = None
    """Cross-validation, if there is no official split: test on this tenth, validate on the next."""
    max_vocabulary: int = 20000
    """Words kept, the most frequent first; all others are read as unknown."""
    min_count: int = 1
    """Words seen less often in the training texts are read as unknown."""
    max_tokens: int = 400
    """Maximum number of tokens read; of a longer text the last ones are read."""

    def __post_init__(self) -> None:
        if not 100 <= self.reviews <= 1_000_000:
            raise ConfigError(f"--reviews must be 100 to 1000000, got {self.reviews}")
        if self.fold is not None and not 0 <= self.fold <= 9:
            raise ConfigError(f"--fold must be 0 to 9, got {self.fold}")
        require_at_least("--max-vocabulary", self.max_vocabulary, 1)
        require_at_least("--min-count", self.min_count, 1)
        require_at_least("--max-tokens", self.max_tokens, 1)
        require_split(self.validation_fraction, self.test_fraction)
        if self.data is None and (self.text_column or self.label_column or self.phrases):
            raise ConfigError("--text-column, --label-column and --phrases need --data")


@dataclass(frozen=True)
class PretrainingConfig:
    """Word vectors learned from texts without their labels, before training."""

    unlabelled: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Learn them from a folder with IMDB, or a .txt file (.gz) with one text per line."""
    word_vectors: bool = False
    """Learn them from the training texts; with --unlabelled from both."""
    vector_size: int = 300
    """Numbers in a pre-trained vector that come from a word's neighbours."""
    topic_size: int = 200
    """Further numbers in it, from the texts in which a word occurs; 0 for none."""
    vector_words: int = 40000
    """Words with a pre-trained vector, the most frequent first."""
    window: int = 5
    """Words on either side that count as a word's neighbours."""

    def __post_init__(self) -> None:
        require_at_least("--vector-size", self.vector_size, 1)
        require_at_least("--topic-size", self.topic_size, 0)
        require_at_least("--vector-words", self.vector_words, 1)
        require_at_least("--window", self.window, 1)


@dataclass(frozen=True)
class ClassifierConfig:
    """The network: embedding, GRU, pooling over time, dense layer."""

    embedding_size: int = 64
    """Size of a word vector."""
    units: int = 64
    """GRU units, per direction."""
    layers: int = 1
    """GRU layers stacked on each other."""
    bidirectional: bool = True
    """Read the text in both directions; a one-directional model can answer word by word."""
    pooling: Literal["max", "mean", "attention", "last"] = "max"
    """How the states are pooled: maximum or mean per unit, mean by learned scores, or the last."""
    dropout: float = 0.5
    """Share of word-vector and pooled features dropped while training."""
    variational: bool = False
    """Drop the same word-vector features at every word of a text (Gal and Ghahramani, 2016)."""
    recurrent_dropout: float = 0.0
    """Share of the state's features dropped on their way to the next step while training."""
    word_dropout: float = 0.25
    """Share of words read as unknown while training."""
    subwords: bool = False
    """Add to each learned word vector those of the word's pieces of 3 to 5 letters."""
    word_ratios: bool = False
    """Initialise learned word vectors with how much more often a word occurs in a class."""
    ngrams: bool = False
    """Combine the GRU with a regression on NB-weighted uni- and bigrams."""

    def __post_init__(self) -> None:
        require_at_least("--embedding-size", self.embedding_size, 1)
        require_at_least("--units", self.units, 1)
        require_at_least("--layers", self.layers, 1)
        require_rate("--dropout", self.dropout)
        require_rate("--recurrent-dropout", self.recurrent_dropout)
        require_rate("--word-dropout", self.word_dropout)


@dataclass(frozen=True)
class SentimentTrainingConfig(TrainingConfig):
    """How the weights are found: Adam, clipped gradients, early stopping."""

    epochs: int = 15
    """Maximum number of passes over the training rows."""
    patience: int = 4
    """Stop after this many epochs without a better validation accuracy."""
    learning_rate: float = 2e-3
    """Adam's step size."""
    seed: int = 0
    """Seed of the generated reviews, the split, the initial weights, dropout and shuffling."""


@dataclass(frozen=True)
class SentimentRunConfig(RunConfig):
    """Where the result goes and what is reported beside it."""

    ngram_baseline: bool = False
    """Also fit naive Bayes and a logistic regression on NB-weighted uni- and bigrams (Wang and
    Manning, 2012)."""


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
    """Word vectors learned from texts without their labels, before training."""
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    """The network: embedding, GRU, pooling over time, dense layer."""
    training: SentimentTrainingConfig = field(default_factory=SentimentTrainingConfig)
    """How the weights are found: Adam, clipped gradients, early stopping."""
    run: SentimentRunConfig = field(default_factory=SentimentRunConfig)
    """Where the result goes and what is reported beside it."""
