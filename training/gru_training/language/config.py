"""The settings of a language model; see `gru_training.config`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import (
    OptionalName,
    RunConfig,
    TrainingConfig,
    require_at_least,
    require_rate,
    require_seed,
    require_split,
)
from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, Integers, OneOf
from gru_training.tables.file_form import TextFormat

Unit = Literal["words", "characters"]
_Path = Annotated[Path | None, tyro.conf.arg(metavar="PATH")]
_Paths = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="PATH")]


@dataclass(frozen=True)
class LanguageDataConfig:
    """Settings of the documents."""

    data: _Path = None
    """Folder of .txt files, a .txt file (.gz, .zst), or a table: CSV, TSV, JSON lines or list,
    Parquet, Arrow, Excel; or a folder with IMDB. Default: the help texts that come with Python."""
    more_data: _Paths = ()
    """Further files and folders like --data, read after it."""
    validation: _Path = None
    """File or folder for choosing the best epoch; default: drawn from --data."""
    test: _Path = None
    """File or folder for the final test; default: drawn from --data."""
    text_column: OptionalName = None
    """Column of a table with the text; detected if called text, sentence, review, ..."""
    separator: OptionalName = None
    """Character between the columns of a CSV, such as ';', or tab; detected."""
    encoding: OptionalName = None
    """Encoding of a text file, such as cp1252 or utf-16; detected: UTF-8, else Windows-1252."""
    document: Literal["file", "line"] = "file"
    """Whether each .txt file is one document, or each of its lines. A row of a table always is."""
    unit: Annotated[Unit | None, tyro.conf.DisallowNone] = None
    """What is predicted one after the other: words in lower case and punctuation marks, or
    characters as they are. Default: words; of Python's help texts characters."""
    max_vocabulary: int = 30000
    """Words or characters kept, the most frequent first; all others are read as unknown."""
    min_count: int = 1
    """Words or characters seen less often in the training documents are read as unknown."""
    validation_fraction: float = 0.1
    """Share of the documents held out for choosing the best epoch; of fewer than 20 documents, so
    much of each."""
    test_fraction: float = 0.1
    """Share of the documents held out for the final test, likewise."""
    split_seed: int | None = None
    """Seed of the split, so that --seed varies the training alone; default: --seed."""
    held_out_tokens: int = 1_000_000
    """Measure held-out documents, in the order drawn, until so many words or characters."""

    def __post_init__(self) -> None:
        require_at_least("--max-vocabulary", self.max_vocabulary, 1)
        require_at_least("--min-count", self.min_count, 1)
        require_at_least("--held-out-tokens", self.held_out_tokens, 1)
        require_split(self.validation_fraction, self.test_fraction)
        self.text_format  # noqa: B018  refuses what cannot be
        if self.split_seed is not None:
            require_seed(self.split_seed, "--split-seed")
        if self.data is None and (
            self.more_data or self.validation or self.test or self.text_column
        ):
            raise ConfigError("--more-data, --validation, --test and --text-column need --data")

    @property
    def reads(self) -> Unit:
        """Unit that is predicted at each step."""
        return self.unit or ("characters" if self.data is None else "words")

    @property
    def text_format(self) -> TextFormat:
        """Format of text files, as far as it is set."""
        return TextFormat(self.separator, self.encoding)

    def drawn_with(self, seed: int) -> int:
        """Return the seed of the split in a training with this seed."""
        return seed if self.split_seed is None else self.split_seed


@dataclass(frozen=True)
class LanguageModelConfig:
    """The network: embedding, stacked GRUs, projection, softmax that shares the embedding."""

    embedding_size: Annotated[int, Integers(64, 512, 64)] = 128
    """Size of the vector of a word or character, which is also that of the softmax."""
    units: Annotated[int, Integers(128, 768, 128)] = 256
    """Units of each GRU."""
    layers: Annotated[int, OneOf((1, 2))] = 1
    """GRU layers stacked on each other."""
    dropout: Annotated[float, Floats(0.0, 0.6)] = 0.2
    """Share of features dropped before, between and after the GRUs while training, the same ones
    at every step (Gal and Ghahramani, 2016)."""
    recurrent_dropout: Annotated[float, Floats(0.0, 0.5)] = 0.0
    """Share of the state's features dropped on their way to the next step while training."""

    def __post_init__(self) -> None:
        require_at_least("--embedding-size", self.embedding_size, 1)
        require_at_least("--units", self.units, 1)
        require_at_least("--layers", self.layers, 1)
        require_rate("--dropout", self.dropout)
        require_rate("--recurrent-dropout", self.recurrent_dropout)


@dataclass(frozen=True)
class LanguageTrainingConfig(TrainingConfig):
    """The search for the weights: Adam, clipped gradients, early stopping."""

    epochs: int = 20
    """Maximum number of passes over the training documents."""
    patience: int = 3
    """Stop after this many epochs without a better validation result."""
    batch_size: Annotated[int, OneOf((16, 32, 64))] = 32
    """Documents read side by side."""
    steps: Annotated[int, OneOf((32, 64, 128))] = 64
    """Words or characters of a chunk: the weights move after each, gradients reach no further back,
    and the state is carried on."""
    learning_rate: Annotated[float, Floats(5e-4, 1e-2, log=True)] = 3e-3
    """Adam's step size."""
    schedule: Literal["constant", "cosine", "decay"] = "cosine"
    """Keep the learning rate constant; lower it to zero over --epochs along half a cosine; or
    multiply it by 0.8 after every epoch from the fourth."""
    sampled: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """While training, compare each next word with so many drawn ones in place of all; 0 compares
    with all. Default: 1024 with more than 10,000 words, else 0."""
    seed: int = 0
    """Seed of the initial weights, dropout and order; without --split-seed also of the split."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least("--steps", self.steps, 1)
        if self.sampled is not None:
            require_at_least("--sampled", self.sampled, 0)


@dataclass(frozen=True)
class LanguageConfig:
    """Train a GRU language model on texts without labels and write a run directory.

    It learns what comes next, and its run says how well, completes texts and scores them. Without
    --data it learns from the help texts that come with Python, character by character.
    Ctrl-C ends training and keeps the best epoch so far.
    """

    preset: OptionalName = None
    """Start from the settings of this name: characters, or imdb for the reviews of IMDB; other
    flags override them."""
    data: LanguageDataConfig = field(default_factory=LanguageDataConfig)
    """What to learn from."""
    model: LanguageModelConfig = field(default_factory=LanguageModelConfig)
    """The network: embedding, stacked GRUs, projection, softmax that shares the embedding."""
    training: LanguageTrainingConfig = field(default_factory=LanguageTrainingConfig)
    """The search for the weights: Adam, clipped gradients, early stopping."""
    run: RunConfig = field(default_factory=RunConfig)
    """Where the result goes."""


PRESETS = {
    "characters": LanguageConfig(
        data=LanguageDataConfig(unit="characters"),
        model=LanguageModelConfig(embedding_size=128, units=512),
        # Small chunks: of a text like Python's help 128 steps of 32 rows make too few updates.
        training=LanguageTrainingConfig(batch_size=16, learning_rate=2e-3),
    ),
    "imdb": LanguageConfig(
        data=LanguageDataConfig(data=Path("../shared/data/imdb"), validation_fraction=0.01),
        model=LanguageModelConfig(embedding_size=256, units=512),
        training=LanguageTrainingConfig(epochs=3, batch_size=64),
    ),
}
