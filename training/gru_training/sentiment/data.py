"""Labelled texts: reading, checking and splitting, without TensorFlow."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

import numpy as np

from gru_training.data.check import DataCheck, DataTable
from gru_training.data.label_cells import TargetKind
from gru_training.data.problems import DataProblemsError, Problems, counted
from gru_training.data.text_files import TextTable
from gru_training.errors import DataError, ForeignDataError, TrainingError
from gru_training.sentiment.config import SentimentConfig, SentimentDataConfig
from gru_training.sentiment.corpora import CLASSES, read_corpus, require_prose
from gru_training.sentiment.labelled_files import read_labelled_files, read_table, require_targets
from gru_training.sentiment.rows import (
    Parts,
    Row,
    SentimentRows,
    numbers_of,
    split,
    target_array,
    text_key,
)
from gru_training.sentiment.soft_targets import SoftTable, SoftTexts, read_soft


@dataclass(frozen=True)
class LabelledTexts:
    """One part of a split."""

    texts: tuple[str, ...]
    labels: np.ndarray
    """Class numbers (N,) int32; 0 and 1 for each label, (N, C) float32; or numbers (N,) float32."""
    places: tuple[str, ...] = ()
    """Place of each row in its file, such as `line 7`; empty for rows without a file."""
    weights: np.ndarray | None = None
    """Weights of the rows in the loss, (N,) float64; None for equal weights."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class SentimentData:
    """A data set ready for training."""

    name: str
    classes: tuple[str, ...]
    """The classes or labels; for a number to estimate, its name."""
    train: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    notes: tuple[str, ...] = ()
    """Notes on the rows for a reader of the report."""
    kind: TargetKind = "class"
    made_up: bool = False
    """Whether the texts were generated."""
    own: bool = False
    """Whether the rows are the user's own rather than a known data set."""
    soft: SoftTexts | None = None
    """Texts with probabilities in place of a label."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of the texts and of the labels by input, where they were found by their names."""

    def parts(self) -> dict[str, LabelledTexts]:
        """Return the parts by name: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def contents(self) -> Iterator[str | np.ndarray]:
        """Yield the contents for a digest."""
        yield from self.classes
        for part in self.parts().values():
            yield from part.texts
            yield part.labels
            if part.weights is not None:
                yield part.weights
        if self.soft is not None:
            yield from self.soft.texts
            yield self.soft.probabilities

    @property
    def learned_texts(self) -> tuple[str, ...]:
        """All texts from which a training learns."""
        return (*self.train.texts, *(() if self.soft is None else self.soft.texts))


def load_data(
    config: SentimentConfig, table: TextTable | None = None, soft: SoftTable | None = None
) -> SentimentData:
    """Load or generate the rows of a training, or take given ones, and split them.

    An official split, and parts named by the settings, are kept. Otherwise the split is drawn with
    the seed, stratified by class, or is that of a fold or of the rows' times. Training rows whose
    text is also in another part are dropped.

    Args:
        config: Settings of the training.
        table: Labelled rows in memory, in place of files.
        soft: Rows with probabilities in memory, in place of `--soft-data`.

    Raises:
        DataError: Rows cannot be used.
    """
    name, unit = ("grammar", "line") if table is None else (table.name, "row")
    problems = Problems(str(config.data.data or name), config.data.drop_bad, unit=unit)
    _, data = read_data(config, problems, table, soft)
    problems.raise_errors()
    assert data is not None
    return data


def read_data(
    config: SentimentConfig,
    problems: Problems,
    table: TextTable | None = None,
    soft: SoftTable | None = None,
) -> tuple[SentimentRows, SentimentData | None]:
    """Read and split rows like `load_data`, and collect their problems.

    Args:
        config: Settings of the training.
        problems: Collector of what is wrong with the rows.
        table: Labelled rows in memory, in place of files.
        soft: Rows with probabilities in memory, in place of `--soft-data`.

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
    held_out = [row.text for row in (*parts.validation, *parts.test)]
    texts = read_soft(config, source.classes, source.kind, held_out, problems, soft)
    if problems.errors:
        return source, None
    return source, replace(labelled_data(source, parts, problems), soft=texts)


def read_rows(
    config: SentimentDataConfig, seed: int, problems: Problems, table: TextTable | None = None
) -> SentimentRows:
    """Read or generate the rows, or take given ones.

    Args:
        config: Settings of the data.
        seed: Seed of the training, and of generated reviews where the settings name no other.
        problems: Collector of what is wrong with the user's own rows.
        table: The rows, where they are not to be read.

    Raises:
        DataError: The source cannot be read.
    """
    if table is not None:
        if config.data is not None or config.phrases:
            raise DataError("--data and --phrases are for files; the rows are given as a table")
        return read_table(table, config, problems)
    if config.data is None:
        from gru_training.sentiment.grammar import generate_reviews

        reviews = generate_reviews(config.reviews, config.drawn_with(seed))
        return SentimentRows("grammar", CLASSES, reviews, made_up=True)
    if not config.data.exists():
        raise DataError(f"--data: there is no file or folder {config.data}")
    if config.data.is_dir():
        _require_plain(config)
        corpus = read_corpus(config.data, config.phrases)
        problems.notes += corpus.notes
        return corpus
    if config.phrases:
        raise DataError(f"--phrases is for a folder with SST-2, got the file {config.data}")
    return read_labelled_files(config, problems)


def _require_plain(config: SentimentDataConfig) -> None:
    """Raise DataError if settings for files are given with the folder of a known data set."""
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
        DataError: The classes are too few, or the rows too few for each part.
    """
    where = str(config.data or source.name)
    given = (source.validation is not None) + (source.test is not None)
    require_targets(source.train, source, where, 3 - given if given else 3)
    rng = np.random.default_rng(config.drawn_with(seed))
    parts = split(source, config, rng, problems)
    if not (parts.train and parts.validation and parts.test):
        _require_other_texts(where, source)
    for part, rows in (("validation", parts.validation), ("test", parts.test)):
        if not rows:
            raise DataError(
                f"{where}: expected at least one row for {part}, got none; are too "
                "many texts the same, or is --text-column the wrong one?"
            )
    require_targets(parts.train, source, f"what is left of {where} for training", 1)
    return parts


def _require_other_texts(where: str, source: SentimentRows) -> None:
    """Raise DataError if a file of its own for a part has all texts of the rows."""
    for flag, held in (("--test", source.test), ("--validation", source.validation)):
        kept = {text_key(row.text) for row in held or ()}
        if kept and kept.issuperset(text_key(row.text) for row in source.train):
            raise DataError(
                f"{where}: expected texts that {flag} does not have, got none; leave {flag} out, "
                "and a share of the rows is held out"
            )


def labelled_data(source: SentimentRows, parts: Parts, problems: Problems) -> SentimentData:
    """Combine rows with what is known about their source, and notes on them."""
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
        name,
        classes,
        train,
        validation,
        test,
        notes,
        source.kind,
        source.made_up,
        source.own,
        columns=problems.columns,
    )


def _weights(rows: Sequence[Row]) -> np.ndarray | None:
    """Return the weights of the rows, (N,), unless all are equal."""
    weights = np.array([row.weight for row in rows], np.float64)
    return None if np.all(weights == weights[:1]) else weights


_QUANTILES = (0, 0.05, 0.5, 0.95, 1)


def check_sentiment(config: SentimentConfig) -> DataCheck:
    """Read, check and split the data of a training.

    Raises:
        ForeignDataError: The columns of the file are not those of labelled texts.
    """
    settings = config.data
    problems = Problems(str(settings.data or "made-up reviews"), settings.drop_bad)
    source: SentimentRows | None = None
    data: SentimentData | None = None
    try:
        source, data = read_data(config, problems)
    except ForeignDataError:
        raise
    except DataProblemsError as error:
        problems.errors += error.messages
    except TrainingError as error:
        problems.error(str(error))
    if config.pretraining.unlabelled is not None:
        try:
            require_prose(config.pretraining.unlabelled)
        except DataError as error:
            problems.error(str(error))
    if config.training.warm_start is not None and data is not None:
        from gru_training.sentiment.warm_start import starting_run, with_start_settings

        try:
            with_start_settings(config, starting_run(config))
        except TrainingError as error:
            problems.error(str(error))
    return DataCheck(
        problems.source,
        "cannot be used as it is" if source is None else _summary(source, data),
        None if source is None else partial(_class_table, source),
        tuple(problems.errors),
        tuple(problems.remedies),
        tuple(problems.notes),
        None if problems.errors else data,
        problems.reading,
    )


def _summary(source: SentimentRows, data: SentimentData | None) -> str:
    what = {
        "class": f"in {counted(len(source.classes), 'class')}",
        "labels": f"with {counted(len(source.classes), 'label')}",
        "number": "with a number each",
    }
    text = f"{counted(len(source.all_rows), 'text')} {what[source.kind]}"
    if data is None:
        return text
    parts = ", ".join(f"{len(part):,} {name}" for name, part in data.parts().items())
    soft = "" if data.soft is None else f"; {len(data.soft):,} with probabilities"
    return f"{text}; {parts}{soft}"


def _class_table(source: SentimentRows) -> DataTable:
    """List each class or label with its rows, their share, and the lengths of its texts."""
    if source.kind == "number":
        return _number_table(source)
    words: dict[int, list[int]] = defaultdict(list)
    for row in source.all_rows:
        for label in numbers_of(row):
            words[label].append(len(row.text.split()))
    total = max(1, len(source.all_rows))
    rows = [
        (
            source.classes[label],
            f"{len(lengths):,}",
            f"{len(lengths) / total:.1%}",
            f"{median(lengths):,.0f}",
            f"{max(lengths):,}",
        )
        for label, lengths in sorted(words.items())
    ]
    head = "class" if source.kind == "class" else "label"
    return DataTable((head, "rows", "share", "median words", "most words"), rows)


def _number_table(source: SentimentRows) -> DataTable:
    """Tabulate the range of the numbers to estimate."""
    values = np.array([row.label for row in source.all_rows], np.float64)
    rows = []
    if len(values):
        figures = (*np.quantile(values, _QUANTILES), values.mean())
        rows.append((source.classes[0], *(f"{value:,.4g}" for value in figures)))
    return DataTable(("number", "least", "5%", "median", "95%", "greatest", "mean"), rows)
