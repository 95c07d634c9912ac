"""Labelled texts, split into training, validation and test rows that share no text."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from training.data.text_files import read_text_file
from training.errors import DataError
from training.sentiment.config import SentimentDataConfig
from training.sentiment.corpora import CLASSES, Row, read_corpus
from training.sentiment.grammar import generate_reviews

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


def load_sentiment_data(config: SentimentDataConfig, seed: int) -> SentimentData:
    """Read or generate the rows and split them.

    An official split is kept. Otherwise the split is drawn under the seed, stratified by class, or
    is that of a fold: its tenth of the rows for the test, the next fold's for validation. Training
    rows whose text also stands in another part are dropped.

    Raises:
        DataError: The source cannot be used; says why.
    """
    classes: tuple[str, ...] = CLASSES
    validation = test = None
    notes: tuple[str, ...] = ()
    if config.data is None:
        name = "grammar"
        reviews = generate_reviews(config.reviews, seed)
        train = [Row(review.text, review.label, str(review.group)) for review in reviews]
    elif not config.data.exists():
        raise DataError(f"--data: there is no file or folder {config.data}")
    elif config.data.is_dir():
        corpus = read_corpus(config.data, config.phrases)
        name, train, validation, test = corpus.name, corpus.train, corpus.validation, corpus.test
        notes = corpus.notes
    else:
        if config.phrases:
            raise DataError(f"--phrases is for a folder with SST-2, got the file {config.data}")
        name = config.data.name.split(".")[0]
        labelled = read_text_file(config.data, config.text_column, config.label_column)
        classes = _class_order({row.label for row in labelled})
        numbers = {label: number for number, label in enumerate(classes)}
        train = [Row(row.text, numbers[row.label]) for row in labelled]
    _require_classes(train, classes, str(config.data or name))

    if config.fold is not None:
        if test is not None or config.data is None:
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
            notes += (f"{dropped:,} {part} rows dropped: their text is also held out elsewhere",)
    for part, rows in (("validation", parts["validation"]), ("test", test)):
        if not rows:
            raise DataError(
                f"{config.data or name}: expected at least one row for {part}, got none; are too "
                "many texts the same, or is --text-column the wrong one?"
            )
    _require_classes(
        parts["training"], classes, f"what is left of {config.data or name} for training"
    )
    return SentimentData(
        name, classes, _part(parts["training"]), _part(parts["validation"]), _part(test), notes
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


def _require_classes(rows: Sequence[Row], classes: tuple[str, ...], source: str) -> None:
    if len(classes) < 2:
        raise DataError(
            f"{source}: expected at least two classes, got only {', '.join(map(repr, classes))}"
        )
    counts = np.bincount([row.label for row in rows], minlength=len(classes))
    for name, count in zip(classes, counts, strict=True):
        if count < 3:
            raise DataError(
                f"{source}: class {name!r} has {count} rows, expected at least 3 "
                "(training, validation and test need one each)"
            )


def _class_order(labels: set[str]) -> tuple[str, ...]:
    """Numbers by value, names by alphabet; nan is no number, and has no place among them."""
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        return tuple(sorted(labels))
    if any(map(math.isnan, values.values())):
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (values[label], label)))


def _without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    taken = {text_key(row.text) for row in others}
    return [row for row in rows if text_key(row.text) not in taken]


def text_key(text: str) -> str:
    """What two texts have in common that count as the same: all but case and blanks."""
    return " ".join(text.casefold().split())


def _part(rows: Sequence[Row]) -> LabelledTexts:
    return LabelledTexts(
        tuple(row.text for row in rows), np.array([row.label for row in rows], np.int32)
    )
