"""Labelled texts, split into training, validation and test rows that share no text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gru_training.data.label_cells import TargetKind
from gru_training.data.problems import Problems
from gru_training.data.text_table import TextTable
from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data_config import SentimentDataConfig
from gru_training.sentiment.rows import Row, SentimentRows, target_array
from gru_training.sentiment.sources.corpora import CLASSES, read_corpus
from gru_training.sentiment.sources.grammar import generate_reviews
from gru_training.sentiment.sources.label_problems import require_targets
from gru_training.sentiment.sources.labelled_file import read_labelled_files, read_table
from gru_training.sentiment.split import Parts, split


@dataclass(frozen=True)
class LabelledTexts:
    """One part of a split."""

    texts: tuple[str, ...]
    labels: np.ndarray
    """Class numbers (N,) int32; 0 and 1 for each label, (N, C) float32; or numbers (N,) float32."""
    places: tuple[str, ...] = ()
    """Where each row stands in its file; none where they stand in no file."""
    weights: np.ndarray | None = None
    """Weights of the rows in the loss, (N,) float64; None: all count the same."""

    def __len__(self) -> int:
        return len(self.texts)

    def same_rows(self, other: "LabelledTexts") -> bool:
        """Whether texts and labels are those of another part, in the same order."""
        return self.texts == other.texts and self.labels.tolist() == other.labels.tolist()


@dataclass(frozen=True)
class SentimentData:
    """A data set ready for training."""

    name: str
    classes: tuple[str, ...]
    """The classes or labels; of a number to estimate what it is called."""
    train: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    notes: tuple[str, ...] = ()
    """What a reader of the report should know about the rows."""
    kind: TargetKind = "class"
    made_up: bool = False
    """Whether the texts were generated."""
    own: bool = False
    """Whether they are the user's, and no known set."""

    def parts(self) -> dict[str, LabelledTexts]:
        """The parts by name: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def contents(self) -> Iterator[str | np.ndarray]:
        """All that the data say, for a digest."""
        yield from self.classes
        for part in self.parts().values():
            yield from part.texts
            yield part.labels
            if part.weights is not None:
                yield part.weights


def load_data(config: SentimentConfig, table: TextTable | None = None) -> SentimentData:
    """Read or generate the rows of a training, or take those given, and split them.

    An official split, and parts that the settings name, are kept. Otherwise the split is drawn
    under the seed, stratified by class, or is that of a fold or of the rows' times. Training rows
    whose text also stands in another part are dropped.

    Args:
        config: Settings of the training.
        table: The rows, where they are not to be read.

    Raises:
        DataError: Rows cannot be used.
    """
    name, unit = ("grammar", "line") if table is None else (table.name, "row")
    problems = Problems(str(config.data.data or name), config.data.drop_bad, unit=unit)
    _, data = read_data(config, problems, table)
    problems.raise_errors()
    assert data is not None
    return data


def read_data(
    config: SentimentConfig, problems: Problems, table: TextTable | None = None
) -> tuple[SentimentRows, SentimentData | None]:
    """Read and split rows as `load_data` does, and collect what is wrong with them.

    Args:
        config: Settings of the training.
        problems: Told of what is wrong with the rows.
        table: The rows, where they are not to be read.

    Returns:
        The rows before they are split; and the data, or None where the problems keep them from
        being trained on.

    Raises:
        DataError: Rows cannot be used.
    """
    seed = config.training.seed
    source = read_rows(config.data, seed, problems, table)
    if problems.errors:
        return source, None
    parts = split_parts(source, config.data, seed, problems)
    if config.training.warm_start is not None:
        from gru_training.sentiment.warm_start import with_learned_in_training

        parts = with_learned_in_training(parts, source, config, problems)
    return source, labelled_data(source, parts, problems)


def read_rows(
    config: SentimentDataConfig, seed: int, problems: Problems, table: TextTable | None = None
) -> SentimentRows:
    """Read or generate the rows, or take those given.

    Args:
        config: What to read.
        seed: Seed of the training, and of generated reviews where the settings name no other.
        problems: Told of what is wrong with the user's own rows.
        table: The rows, where they are not to be read.

    Raises:
        DataError: The source cannot be read.
    """
    if table is not None:
        if config.data is not None or config.phrases:
            raise DataError("--data and --phrases are for files; the rows are given as a table")
        return read_table(table, config, problems)
    if config.data is None:
        reviews = generate_reviews(config.reviews, config.drawn_with(seed))
        rows = [Row(review.text, review.label, str(review.group)) for review in reviews]
        return SentimentRows("grammar", CLASSES, rows, made_up=True)
    if not config.data.exists():
        raise DataError(f"--data: there is no file or folder {config.data}")
    if config.data.is_dir():
        _require_plain(config)
        corpus = read_corpus(config.data, config.phrases)
        problems.notes += corpus.notes
        return SentimentRows(corpus.name, CLASSES, corpus.train, corpus.validation, corpus.test)
    if config.phrases:
        raise DataError(f"--phrases is for a folder with SST-2, got the file {config.data}")
    return read_labelled_files(config, problems)


def _require_plain(config: SentimentDataConfig) -> None:
    """Raise DataError where settings for files are given with the folder of a known set."""
    for flag, value in (
        ("--more-data", config.more_data),
        ("--validation", config.validation),
        ("--test", config.test),
        ("--part-column", config.part_column),
        ("--group-column", config.group_column),
        ("--time-column", config.time_column),
        ("--target-type", config.target_type),
    ):
        if value:
            raise DataError(f"{flag} is for a file of your own, got the folder {config.data}")


def split_parts(
    source: SentimentRows, config: SentimentDataConfig, seed: int, problems: Problems
) -> Parts:
    """Split rows into parts.

    Raises:
        DataError: Too few classes, or too few rows for each part.
    """
    where = str(config.data or source.name)
    given = (source.validation is not None) + (source.test is not None)
    require_targets(source.train, source, where, 3 - given if given else 3)
    rng = np.random.default_rng(config.drawn_with(seed))
    parts = split(source, config, rng, problems)
    for part, rows in (("validation", parts.validation), ("test", parts.test)):
        if not rows:
            raise DataError(
                f"{where}: expected at least one row for {part}, got none; are too "
                "many texts the same, or is --text-column the wrong one?"
            )
    require_targets(parts.train, source, f"what is left of {where} for training", 1)
    return parts


def labelled_data(source: SentimentRows, parts: Parts, problems: Problems) -> SentimentData:
    """Rows with what is known of their source, and the notes on them."""
    name, classes = source.name, source.classes
    train, validation, test = (
        LabelledTexts(
            tuple(row.text for row in rows),
            target_array(rows, source.kind, len(classes)),
            tuple(row.place for row in rows),
            _weights(rows),
        )
        for rows in parts
    )
    notes = tuple(problems.notes)
    return SentimentData(
        name, classes, train, validation, test, notes, source.kind, source.made_up, source.own
    )


def _weights(rows: Sequence[Row]) -> np.ndarray | None:
    """The weights of rows, (N,), unless all are the same."""
    weights = np.array([row.weight for row in rows], np.float64)
    return None if np.all(weights == weights[:1]) else weights
