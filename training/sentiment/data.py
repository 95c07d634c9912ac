"""Labelled texts, split into training, validation and test rows that share no text."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from training.data.problems import Problems
from training.data.text_table import TextTable
from training.errors import DataError
from training.sentiment.config import SentimentDataConfig
from training.sentiment.sources.corpora import CLASSES, Row, read_corpus, text_key
from training.sentiment.sources.grammar import generate_reviews
from training.sentiment.sources.labelled_file import class_problem, read_labelled_file, read_table

FOLDS = 10


@dataclass(frozen=True)
class LabelledTexts:
    """One part of a split."""

    texts: tuple[str, ...]
    labels: np.ndarray
    """(N,) int32: indices into the classes."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class SentimentData:
    """A data set ready for training."""

    name: str
    classes: tuple[str, ...]
    train: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    notes: tuple[str, ...] = ()
    """What a reader of the report should know about the rows."""

    def parts(self) -> dict[str, LabelledTexts]:
        """The parts by name: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def contents(self) -> Iterator[str | np.ndarray]:
        """All that the data say, for a digest."""
        yield from self.classes
        for part in self.parts().values():
            yield from part.texts
            yield part.labels


@dataclass(frozen=True)
class SentimentRows:
    """The rows of a source before they are split; a part without official rows is None."""

    name: str
    classes: tuple[str, ...]
    train: list[Row]
    validation: list[Row] | None = None
    test: list[Row] | None = None
    made_up: bool = False

    @property
    def all_rows(self) -> list[Row]:
        """Those of all parts."""
        return [*self.train, *(self.validation or ()), *(self.test or ())]


def load_sentiment_data(
    config: SentimentDataConfig, seed: int, table: TextTable | None = None
) -> SentimentData:
    """Read or generate the rows, or take those given, and split them.

    An official split is kept. Otherwise the split is drawn under the seed, stratified by class, or
    is that of a fold: its tenth of the rows for the test, the next fold's for validation. Training
    rows whose text also stands in another part are dropped.

    Args:
        config: Where the rows are, and how to split them.
        seed: Of generated reviews and of the split.
        table: The rows, where they are not to be read.

    Raises:
        DataError: The source cannot be used; says why.
    """
    name = "grammar" if table is None else table.name
    unit = "line" if table is None else "row"
    problems = Problems(str(config.data or name), config.drop_bad, unit=unit)
    source = read_rows(config, seed, problems, table)
    problems.raise_errors()
    return split_rows(source, config, seed, problems)


def read_rows(
    config: SentimentDataConfig, seed: int, problems: Problems, table: TextTable | None = None
) -> SentimentRows:
    """Read or generate the rows, or take those given.

    Args:
        config: What to read.
        seed: Of generated rows.
        problems: Told of what is wrong with the user's own rows.
        table: The rows, where they are not to be read.

    Raises:
        DataError: The source cannot be read.
    """
    if table is not None:
        if config.data is not None or config.phrases:
            raise DataError("--data and --phrases are for files; the rows are given as a table")
        return SentimentRows(table.name, *read_table(table, config, problems))
    if config.data is None:
        reviews = generate_reviews(config.reviews, seed)
        rows = [Row(review.text, review.label, str(review.group)) for review in reviews]
        return SentimentRows("grammar", CLASSES, rows, made_up=True)
    if not config.data.exists():
        raise DataError(f"--data: there is no file or folder {config.data}")
    if config.data.is_dir():
        corpus = read_corpus(config.data, config.phrases)
        problems.notes += corpus.notes
        return SentimentRows(corpus.name, CLASSES, corpus.train, corpus.validation, corpus.test)
    if config.phrases:
        raise DataError(f"--phrases is for a folder with SST-2, got the file {config.data}")
    return SentimentRows(config.data.name.split(".")[0], *read_labelled_file(config, problems))


def split_rows(
    source: SentimentRows, config: SentimentDataConfig, seed: int, problems: Problems
) -> SentimentData:
    """Split rows as `load_sentiment_data` does.

    Raises:
        DataError: Too few classes, or too few rows for each part.
    """
    name, classes = source.name, source.classes
    train, validation, test = source.train, source.validation, source.test
    _require_classes(train, classes, str(config.data or name), 3)
    if config.fold is not None:
        if test is not None or validation is not None or source.made_up:
            raise DataError(f"--fold is for rows without an official split; {name} has one")
        train, validation, test = _fold(train, config.fold)
    rng = np.random.default_rng(seed)
    if test is None:
        train, test = hold_out(train, config.test_fraction, rng)
        fraction = config.validation_fraction / (1 - config.test_fraction)
    else:
        fraction = config.validation_fraction
    if validation is None:
        train, validation = hold_out(train, fraction, rng)
    parts = {
        "validation": _without(validation, test),
        "training": _without(train, [*validation, *test]),
    }
    for part, before in (("validation", validation), ("training", train)):
        dropped = len(before) - len(parts[part])
        if dropped:
            problems.note(f"{dropped:,} {part} rows dropped: their text is also held out elsewhere")
    for part, rows in (("validation", parts["validation"]), ("test", test)):
        if not rows:
            raise DataError(
                f"{config.data or name}: expected at least one row for {part}, got none; are too "
                "many texts the same, or is --text-column the wrong one?"
            )
    left = f"what is left of {config.data or name} for training"
    _require_classes(parts["training"], classes, left, 1)
    return SentimentData(
        name,
        classes,
        _part(parts["training"]),
        _part(parts["validation"]),
        _part(test),
        tuple(problems.notes),
    )


def hold_out(
    rows: Sequence[Row], fraction: float, rng: np.random.Generator
) -> tuple[list[Row], list[Row]]:
    """Split rows into those that stay and those held out, both in their first order.

    Rows of one group, and rows with the same text but for case and blanks, stay together. Groups
    are drawn separately for each set of labels that occurs in a group, so that the classes keep
    their shares where groups are small.

    Args:
        rows: The rows to split.
        fraction: Share to hold out, of each stratum at least one group and never all.
        rng: Draws the groups.

    Returns:
        The rows that stay and the rows held out.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        members[row.group if row.group is not None else text_key(row.text)].append(index)
    strata: dict[tuple[int, ...], list[list[int]]] = defaultdict(list)
    for indices in members.values():
        strata[tuple(sorted({rows[index].label for index in indices}))].append(indices)

    held: set[int] = set()
    for labels in sorted(strata):
        groups = strata[labels]
        quota = max(1.0, fraction * sum(map(len, groups)))
        count = 0
        for position in rng.permutation(len(groups))[: len(groups) - 1]:
            if count >= quota:
                break
            held.update(groups[position])
            count += len(groups[position])
    stay = [row for index, row in enumerate(rows) if index not in held]
    out = [row for index, row in enumerate(rows) if index in held]
    return stay, out


def fixed_folds(rows: Sequence[Row]) -> np.ndarray:
    """The fold of each row, (N,) 0 to 9: the same wherever and whenever they are drawn.

    Texts are ranked by their SHA-256 within each class and dealt out in turn, so that the classes
    keep their shares; rows with the same text but for case and blanks are in the same fold.
    """
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        first.setdefault(text_key(row.text), index)
    dealt: dict[str, int] = {}
    for label in sorted({row.label for row in rows}):
        keys = [key for key, index in first.items() if rows[index].label == label]
        keys.sort(key=lambda key: sha256(key.encode()).digest())
        dealt.update({key: rank % FOLDS for rank, key in enumerate(keys)})
    return np.array([dealt[text_key(row.text)] for row in rows])


def _fold(rows: Sequence[Row], fold: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Training, validation and test rows of a fold."""
    folds = fixed_folds(rows)
    after = (fold + 1) % FOLDS
    return (
        [row for row, of in zip(rows, folds, strict=True) if of not in (fold, after)],
        [row for row, of in zip(rows, folds, strict=True) if of == after],
        [row for row, of in zip(rows, folds, strict=True) if of == fold],
    )


def _require_classes(
    rows: Sequence[Row], classes: tuple[str, ...], source: str, fewest: int
) -> None:
    counts = np.bincount([row.label for row in rows], minlength=len(classes))
    problem = class_problem(dict(zip(classes, counts.tolist(), strict=True)), fewest)
    if problem:
        raise DataError(f"{source}: {problem}")


def _without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    taken = {text_key(row.text) for row in others}
    return [row for row in rows if text_key(row.text) not in taken]


def _part(rows: Sequence[Row]) -> LabelledTexts:
    return LabelledTexts(
        tuple(row.text for row in rows), np.array([row.label for row in rows], np.int32)
    )
