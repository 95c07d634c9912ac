"""The settings of the rows of a text classifier: where they are, and what is read of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import (
    OptionalFlag,
    OptionalName,
    require_at_least,
    require_seed,
    require_split,
)
from gru_training.data.label_cells import TargetKind
from gru_training.errors import ConfigError
from gru_training.tables.file_form import TextFormat

_Path = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
_Paths = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="PATH")]
_Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")]


_FEWEST_PIECES = 100


@dataclass(frozen=True)
class SentimentDataConfig:
    """What to learn from."""

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
    --label-columns, --label-separator or lists in JSON lines, else class."""
    label_columns: _Names = ()
    """Several columns with labels: either names of labels, or yes and no under the label's name: 1
    and 0, true and false, yes and no, x and an empty cell, which says no."""
    label_separator: OptionalName = None
    """What stands between several labels in one cell, such as ';'."""
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
    pieces: int | None = None
    """Cut words into this many learned pieces (byte pairs), which keep case and blanks; default:
    whole words, in lower case."""
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
        if self.pieces is not None:
            require_at_least("--pieces", self.pieces, _FEWEST_PIECES)
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
        """How text files are written, where that is set."""
        return TextFormat(self.separator, self.encoding)

    def drawn_with(self, seed: int) -> int:
        """The seed of generated reviews and of the split, in a training with this seed."""
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
        # What no file gives may still be drawn by group or time.
        if len(chosen) > 1 and chosen not in (
            (files, "--group-column"),
            (files, "--time-column"),
        ):
            raise ConfigError(f"{' and '.join(chosen)} say differently how to split; choose one")

    def _check_labels(self) -> None:
        several = self.label_columns or self.label_separator
        if several and self.target_type not in (None, "labels"):
            raise ConfigError(
                "--label-columns and --label-separator are for --target-type labels, got "
                f"{self.target_type}"
            )
        if self.label_columns and (self.label_column or self.label_separator):
            raise ConfigError(
                "--label-columns excludes --label-column and --label-separator, which are for "
                "labels in one column"
            )


@dataclass(frozen=True)
class PretrainingConfig:
    """What was learned from texts without their labels, before training."""

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
    vectors_use: Literal["both", "fixed", "trained"] = "both"
    """Leave the vectors of --vectors as they are, beside ones that are learned; the same without
    those; or go on training them."""

    @property
    def wanted(self) -> bool:
        """Whether words have vectors before training."""
        return self.word_vectors or self.unlabelled is not None or self.vectors is not None

    def __post_init__(self) -> None:
        if self.vectors is not None and (self.unlabelled is not None or self.word_vectors):
            raise ConfigError("--vectors excludes --unlabelled and --word-vectors")
        require_at_least("--vector-size", self.vector_size, 1)
        require_at_least("--topic-size", self.topic_size, 0)
        require_at_least("--vector-words", self.vector_words, 1)
        require_at_least("--window", self.window, 1)
