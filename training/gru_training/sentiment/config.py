"""The settings of the sentiment pipeline, and presets of them; see `gru_training.config`."""

from dataclasses import dataclass, field, replace
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
    require_seed,
    require_split,
)
from gru_training.data.label_cells import TargetKind
from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, Integers, OneOf
from gru_training.tables.file_form import TextFormat

_Path = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
_Paths = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="PATH")]
_Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class SentimentDataConfig:
    """Settings of the texts."""

    data: _Path = None
    """Folder of a known set, or your table: CSV, TSV, JSON lines or list (.gz, .zst), Parquet,
    Arrow, Excel; default: generated reviews."""
    more_data: _Paths = ()
    """Further files like --data, read after it."""
    validation: _Path = None
    """File with the rows for choosing the best epoch; default: drawn from --data."""
    test: _Path = None
    """File with the rows for the final test; default: drawn from --data."""
    text_column: OptionalName = None
    """Column with the text; detected if called text, sentence, review, ..."""
    label_column: OptionalName = None
    """Column with the label; detected if called label, sentiment, class, ..."""
    target_type: TargetKind | None = None
    """One class for each text, any number of labels, or a number to estimate; default: labels with
    --label-columns, --label-separator or lists that hold more than one, else class."""
    label_columns: _Names = ()
    """Several columns with labels: either names of labels, or yes and no under the label's name: 1
    and 0, true and false, yes and no, x and an empty cell, which says no."""
    label_separator: OptionalName = None
    """Text between several labels in one cell, such as ';'."""
    separator: OptionalName = None
    """Character between the columns of a CSV, such as ';', or tab; detected."""
    encoding: OptionalName = None
    """Encoding of a text file, such as cp1252 or utf-16; detected: UTF-8, else Windows-1252."""
    part_column: OptionalName = None
    """Column that says of each row whether it is for train, validation or test."""
    group_column: OptionalName = None
    """Column, such as the customer, whose rows of one value must stay in one part."""
    time_column: OptionalName = None
    """Column with the time: test on the newest rows, validate on those just before them."""
    drop_bad: bool = False
    """Leave out rows of your file that cannot be used: without text or label, or malformed."""
    drop_duplicates: bool = False
    """Keep the first row of each text, and none of texts with more than one label."""
    drop_near_duplicates: bool = False
    """Leave out training rows whose text is almost that of a row held out."""
    drop_small_classes: bool = False
    """Leave out classes with fewer than three rows."""
    merge_labels: bool = False
    """Merge labels that differ only in case, blanks or the form of a number."""
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
    split_seed: int | None = None
    """Seed of the generated reviews and of the split, so that --seed varies the training alone;
    default: --seed."""
    cleaning: OptionalFlag = None
    """Before reading words, normalise Unicode, remove HTML, shorten web addresses and split emoji;
    default: for data of your own."""
    spacing: OptionalFlag = None
    """Tell words and signs behind a blank from those without one; default: for data of your own, if
    the network reads in both directions and has no vectors from elsewhere."""
    max_vocabulary: int = 20000
    """Words kept, the most frequent first; all others are read as unknown, or in data of your own
    as kept ones that begin alike."""
    min_count: int = 1
    """Words seen less often in the training texts are not kept."""
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
        if self.data is None and (self.more_data or self.validation or self.test):
            raise ConfigError("--more-data, --validation and --test need --data")
        self.text_format  # noqa: B018  refuses what cannot be
        if self.split_seed is not None:
            require_seed(self.split_seed, "--split-seed")
        self._check_split()
        self._check_labels()

    @property
    def text_format(self) -> TextFormat:
        """Format of text files, as far as it is set."""
        return TextFormat(self.separator, self.encoding)

    def drawn_with(self, seed: int) -> int:
        """Return the seed of generated reviews and of the split in a training with this seed."""
        return seed if self.split_seed is None else self.split_seed

    def _check_split(self) -> None:
        """Refuse ways of splitting that exclude each other."""
        files = "--validation or --test"
        ways = {
            files: self.validation or self.test,
            "--part-column": self.part_column,
            "--fold": self.fold,
            "--time-column": self.time_column,
            "--group-column": self.group_column,
        }
        chosen = tuple(flag for flag, value in ways.items() if value is not None)
        # Parts missing from the files may still be drawn by group or time.
        if len(chosen) > 1 and chosen not in (
            (files, "--group-column"),
            (files, "--time-column"),
        ):
            raise ConfigError(f"{' and '.join(chosen)} say differently how to split; choose one")

    def _check_labels(self) -> None:
        if self.label_separator and self.target_type not in (None, "labels"):
            raise ConfigError(
                f"--label-separator is for --target-type labels, got {self.target_type}"
            )
        if self.label_columns and self.target_type == "number":
            raise ConfigError("--label-columns is for --target-type labels or class, got number")
        if self.label_columns and (self.label_column or self.label_separator):
            raise ConfigError(
                "--label-columns excludes --label-column and --label-separator, which are for "
                "labels in one column"
            )


@dataclass(frozen=True)
class PretrainingConfig:
    """Settings of learning from unlabelled texts before training."""

    unlabelled: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Learn word vectors from a folder with IMDB, or a .txt file (.gz) with one text per line."""
    word_vectors: bool = False
    """Learn word vectors from the training texts; with --unlabelled from both."""
    vector_size: int = 300
    """Numbers in a pre-trained vector that come from a word's neighbours."""
    topic_size: int = 200
    """Further numbers in it, from the texts in which a word occurs; 0 for none."""
    vector_words: int = 40000
    """Words with a pre-trained vector, the most frequent first; of --vectors those that it reads
    beside the words of the training texts."""
    window: int = 5
    """Words on either side that count as a word's neighbours."""
    vectors: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Take word vectors from a file in GloVe, word2vec (text or binary) or fastText format (.gz
    too)."""

    @property
    def wanted(self) -> bool:
        """True if words have vectors before training."""
        return self.word_vectors or self.unlabelled is not None or self.vectors is not None

    def __post_init__(self) -> None:
        if self.vectors is not None and (self.unlabelled is not None or self.word_vectors):
            raise ConfigError("--vectors excludes --unlabelled and --word-vectors")
        require_at_least("--vector-size", self.vector_size, 1)
        require_at_least("--topic-size", self.topic_size, 0)
        require_at_least("--vector-words", self.vector_words, 1)
        require_at_least("--window", self.window, 1)


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
    word_dropout: Annotated[float, Floats(0.0, 0.4)] = 0.25
    """Share of words read as unknown while training."""
    subwords: Annotated[bool, OneOf((False, True))] = False
    """Add to each learned word vector those of the word's pieces of 3 to 5 letters."""
    word_ratios: Annotated[bool, OneOf((False, True))] = False
    """Initialise learned word vectors with how much more often a word occurs in a class."""
    ngrams: OptionalFlag = None
    """Combine a regression on NB-weighted n-grams with the GRU, as far as this helps; default: for
    files of your own, if the network reads in both directions."""
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
        require_rate("--word-dropout", self.word_dropout)


@dataclass(frozen=True)
class DecisionConfig:
    """The step from probabilities to answers, kept in the run and in its exports."""

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
        """Return the most rows that an epoch reads beside this many labelled ones."""
        return 2 * labelled if self.soft_rows is None else self.soft_rows


@dataclass(frozen=True)
class SentimentTrainingConfig(TrainingConfig):
    """The search for the weights: Adam, clipped gradients, early stopping."""

    epochs: int = 15
    """Maximum number of passes over the training rows."""
    patience: int = 4
    """Stop after this many epochs without a better validation accuracy."""
    learning_rate: Annotated[float, Floats(5e-4, 1e-2, log=True)] = 2e-3
    """Adam's step size."""
    class_weight: Annotated[str | None, tyro.conf.arg(metavar="balanced|none|FILE")] = None
    """Weights of the classes: balanced gives all classes the same weight in sum, none all rows the
    same weight; or a weight for each class as JSON, such as {"spam": 3}, or a file with it.
    Default: none; balanced, with --metric macro_f1, if a class of your own file has ten times the
    rows of another."""
    metric: OptionalName = None
    """Metric by which epoch, penalties and combination are chosen: accuracy, balanced_accuracy,
    macro_f1, weighted_f1, log_loss, average_precision, f1:CLASS; of several labels micro_f1,
    macro_f1, exact_match, log_loss, average_precision, f1:LABEL; of a number mae, rmse. Default:
    accuracy, micro_f1, mae."""
    warm_start: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Begin with the vocabulary and the weights of this run, whose sizes the network has. Rows that
    the run has learned from are not held out."""
    seed: int = 0
    """Seed of the initial weights, dropout and shuffling; without --split-seed also of generated
    reviews and of the split."""


@dataclass(frozen=True)
class SentimentRunConfig(RunConfig):
    """The place of the results, and what is reported beside them."""

    ngram_baseline: bool = False
    """Also fit naive Bayes and a logistic regression on NB-weighted n-grams (Wang and Manning,
    2012)."""


@dataclass(frozen=True)
class SentimentConfig:
    """Train a GRU that gives texts a class, labels or a number, and write a run directory.

    With --data it reads your own table of texts, or a folder with a known set: MR (rt-polarity.pos,
    rt-polarity.neg), SST-2 (stsa.binary.*.txt), IMDB (imdb_train.tsv.gz, imdb_test.tsv.gz) or the
    UCI sentences (*_labelled.txt). Without --data it learns from generated film reviews in which
    word order decides, in less than a minute on two cores. Ctrl-C ends training and keeps the best
    epoch so far.
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
    """The search for the weights: Adam, clipped gradients, early stopping."""
    run: SentimentRunConfig = field(default_factory=SentimentRunConfig)
    """Where the result goes and what is reported beside it."""

    def __post_init__(self) -> None:
        if self.data.spacing:
            if self.pretraining.wanted:
                raise ConfigError(
                    "--spacing excludes --vectors, --unlabelled and --word-vectors, which are of "
                    "words"
                )
            if not self.model.bidirectional:
                raise ConfigError(
                    "--spacing needs --bidirectional: a model in one direction answers word by word"
                )
        if self.training.warm_start is not None and self.model.word_ratios:
            raise ConfigError(
                "--warm-start excludes --word-ratios: word vectors begin as those of the run"
            )


_SETS = Path("../shared/data")
_NO_VECTORS = PretrainingConfig()
_OWN_TEXTS = PretrainingConfig(word_vectors=True)
_UNLABELLED_TEXTS = PretrainingConfig(unlabelled=_SETS / "imdb")
_NETWORK_ONLY = ClassifierConfig(
    embedding_size=128,
    units=128,
    word_dropout=0.4,
    subwords=True,
    word_ratios=True,
    ngrams=True,
)
_PRETRAINED = ClassifierConfig(embedding_size=64, units=128, ngrams=True)
_LONG_TEXTS = ClassifierConfig(
    embedding_size=16, units=64, pooling="attention", word_dropout=0.3, ngrams=True
)


def _preset(
    data: SentimentDataConfig, pretraining: PretrainingConfig, model: ClassifierConfig, epochs: int
) -> SentimentConfig:
    training = SentimentTrainingConfig(epochs=epochs, learning_rate=1e-3, schedule="cosine")
    return SentimentConfig(data=data, pretraining=pretraining, model=model, training=training)


_MR = SentimentDataConfig(data=_SETS / "mr", fold=0)
_SST2 = SentimentDataConfig(data=_SETS / "sst2", phrases=True)
_IMDB = SentimentDataConfig(data=_SETS / "imdb", max_tokens=1000)

PRESETS = {
    "demo": SentimentConfig(),
    "mr": _preset(_MR, _NO_VECTORS, _NETWORK_ONLY, 5),
    "mr-pretrained": _preset(_MR, _UNLABELLED_TEXTS, _PRETRAINED, 5),
    # With ratios it would memorise the phrases, most of which are parts of others.
    "sst2": _preset(_SST2, _OWN_TEXTS, replace(_NETWORK_ONLY, word_ratios=False), 2),
    "sst2-pretrained": _preset(_SST2, _UNLABELLED_TEXTS, _PRETRAINED, 3),
    "imdb": _preset(_IMDB, _OWN_TEXTS, _LONG_TEXTS, 3),
    "imdb-pretrained": _preset(_IMDB, _UNLABELLED_TEXTS, _LONG_TEXTS, 3),
}
