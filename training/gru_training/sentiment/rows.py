"""Labelled texts as rows, and their split into parts without common texts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from gru_training.data.label_cells import TargetKind
from gru_training.data.near_duplicates import near_duplicates
from gru_training.data.problems import Problems, counted
from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentDataConfig

Target = int | tuple[int, ...] | float
"""A class number, the numbers of labels, or a number to estimate."""
_LEAST_SECONDS = 1e8
"""Largest time, in seconds from 1970, below which all are numbers such as years; that is 1973."""
_LEVELS = 10
"""Number of levels of a number to estimate; every part gets its share of each."""


class Row(NamedTuple):
    """One labelled text."""

    text: str
    label: Target
    """Label of the text; of two classes 0 is negative and 1 positive."""
    group: str | None = None
    """Group of rows that must stay in one part of a split (IMDB: the movie)."""
    place: str = ""
    """Place in its file, such as `line 7`; empty without a file."""
    time: float = 0.0
    """Time of the row, for a split in the order of time."""
    weight: float = 1.0
    """Weight of the row in the loss, relative to the others."""


@dataclass(frozen=True)
class SentimentRows:
    """The rows of a source before they are split; a part without official rows is None."""

    name: str
    classes: tuple[str, ...]
    """The classes or labels; for a number to estimate, its name."""
    train: list[Row]
    validation: list[Row] | None = None
    test: list[Row] | None = None
    made_up: bool = False
    kind: TargetKind = "class"
    own: bool = False
    """Whether the rows are the user's own rather than a known data set."""
    notes: tuple[str, ...] = ()
    """Notes for a reader of the report."""

    @property
    def all_rows(self) -> list[Row]:
        """The rows of all parts."""
        return [*self.train, *(self.validation or ()), *(self.test or ())]


def text_key(text: str) -> str:
    """Return a text in lower case with single blanks, by which texts count as equal."""
    return " ".join(text.casefold().split())


def strata(rows: Sequence[Row], kind: TargetKind) -> list[int]:
    """Return the stratum of each row, whose share is kept in every part of a split.

    It is the class, or the rarest of several labels (-1 for a row without any), or the tenth of a
    number.
    """
    if kind == "class":
        return [int(row.label) for row in rows if not isinstance(row.label, tuple)]
    if kind == "number":
        values = np.array([row.label for row in rows], np.float64)
        inner = np.linspace(0, 1, _LEVELS + 1)[1:-1]
        edges = np.quantile(values, inner) if len(rows) else inner
        return [int(level) for level in np.searchsorted(edges, values)]
    counts = np.bincount([k for row in rows for k in numbers_of(row)])
    return [min(numbers_of(row), key=lambda k: (counts[k], k), default=-1) for row in rows]


def numbers_of(row: Row) -> tuple[int, ...]:
    """Return the numbers of a row's labels."""
    return row.label if isinstance(row.label, tuple) else (int(row.label),)


def target_array(rows: Sequence[Row], kind: TargetKind, classes: int) -> np.ndarray:
    """Return the targets of N rows.

    Class numbers (N,) int32; 0 and 1 for each label, (N, C) float32; or numbers (N,) float32.
    """
    if kind == "labels":
        held = np.zeros((len(rows), classes), np.float32)
        for number, row in enumerate(rows):
            held[number, list(numbers_of(row))] = 1
        return held
    return np.array([row.label for row in rows], np.int32 if kind == "class" else np.float32)


FOLDS = 10
_PLACES_SHOWN = 5
_PAIRS_SHOWN = 3
_MIN_SIMILARITY = 0.85
"""Jaccard index of their letters from which two texts count as near-duplicates."""
_MIN_LETTERS = 24
"""Fewest characters of a text; shorter texts are too often similar by chance."""
_MOST_LETTERS = 5_000_000
"""Most characters in which near-duplicates can be found within seconds."""


class Parts(NamedTuple):
    """The rows of a split."""

    train: list[Row]
    validation: list[Row]
    test: list[Row]


def split(
    source: SentimentRows, config: SentimentDataConfig, rng: np.random.Generator, problems: Problems
) -> Parts:
    """Draw the parts that are missing, and drop rows whose text is also in another part.

    Args:
        source: The rows; parts that it gives are kept.
        config: Settings of the split.
        rng: Generator that draws the rows.
        problems: Collector of notes on rows that were dropped.

    Raises:
        DataError: The source has parts that a fold would break up.
    """
    train, validation, test = source.train, source.validation, source.test
    if config.fold is not None:
        if test is not None or validation is not None or source.made_up:
            raise DataError(f"--fold is for rows without an official split; {source.name} has one")
        train, validation, test = _fold(train, config.fold, source.kind)
    fraction = config.validation_fraction
    if test is None:
        if validation is None:
            fraction /= 1 - config.test_fraction
        train, test = _held(source, config, train, config.test_fraction, rng)
    if validation is None:
        train, validation = _held(source, config, train, fraction, rng)
    if config.time_column is not None:
        problems.note(_time_note(config.time_column, train, validation, test))
    by_group = config.group_column is not None
    kept_validation = _without(validation, test, "validation", by_group, problems)
    kept_train = _without(train, [*validation, *test], "training", by_group, problems)
    if source.own:
        kept_train = far_from(
            kept_train, [*kept_validation, *test], config.drop_near_duplicates, problems
        )
    return Parts(kept_train, kept_validation, test)


def _long_texts(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """List the rows that may be near-duplicates, with their keys."""
    keyed = [(row, text_key(row.text)) for row in rows]
    return [(row, key) for row, key in keyed if len(key) >= _MIN_LETTERS]


def far_from(rows: list[Row], held_out: Sequence[Row], drop: bool, problems: Problems) -> list[Row]:
    """Drop training rows that are near-duplicates of held-out rows; keep all without `drop`."""
    long, held = (_long_texts(part) for part in (rows, held_out))
    texts, others = ([key for _, key in part] for part in (long, held))
    if sum(map(len, texts)) + sum(map(len, others)) > _MOST_LETTERS:
        if drop:
            raise DataError(
                f"--drop-near-duplicates is for texts of at most {_MOST_LETTERS:,} characters in "
                "all"
            )
        return rows
    found = near_duplicates(texts, others, _MIN_SIMILARITY)
    if not found:
        return rows
    pairs = [(long[each.place][0], held[each.other][0]) for each in found]
    shown = [f"{row.place} like {other.place}" for row, other in pairs[:_PAIRS_SHOWN] if row.place]
    places = f" ({', '.join(shown)}{' ...' if len(found) > len(shown) else ''})" if shown else ""
    parted = sum(row.label != other.label for row, other in pairs)
    like = f"a row that is held out{places}"
    if parted:
        like += f", {parted:,} with another label"
    rows_found = counted(len(found), "training row")
    problems.note(
        f"{rows_found} dropped, almost the text of {like} (--drop-near-duplicates)"
        if drop
        else f"{rows_found} with almost the text of {like}; they stay, and "
        "--drop-near-duplicates removes them"
    )
    near = {id(row) for row, _ in pairs}
    return [row for row in rows if id(row) not in near] if drop else rows


def _held(
    source: SentimentRows,
    config: SentimentDataConfig,
    rows: list[Row],
    fraction: float,
    rng: np.random.Generator,
) -> tuple[list[Row], list[Row]]:
    if config.time_column is not None:
        return newest(rows, fraction)
    return hold_out(rows, fraction, rng, strata(rows, source.kind))


def hold_out(
    rows: Sequence[Row],
    fraction: float,
    rng: np.random.Generator,
    levels: Sequence[int],
) -> tuple[list[Row], list[Row]]:
    """Split rows into those that stay and those held out, both in their original order.

    Rows of one group, and rows with the same text except for case and blanks, stay together. Groups
    are drawn separately for each set of levels in a group, so that small groups keep the classes'
    shares.

    Args:
        rows: The rows to split.
        fraction: Share to hold out, of each stratum at least one group and never all.
        rng: Generator that draws the groups.
        levels: Stratum of each row, from `strata`, which is to have its share.

    Returns:
        The rows that stay and the rows held out.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        members[row.group if row.group is not None else text_key(row.text)].append(index)
    groups_of: dict[tuple[int, ...], list[list[int]]] = defaultdict(list)
    for indices in members.values():
        groups_of[tuple(sorted({levels[index] for index in indices}))].append(indices)

    held: set[int] = set()
    for stratum in sorted(groups_of):
        groups = groups_of[stratum]
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


def newest(rows: Sequence[Row], fraction: float) -> tuple[list[Row], list[Row]]:
    """Split rows into the older and the newest, both in order of time.

    Args:
        rows: Rows with times; rows of one time stay together.
        fraction: Share of the newest, at least one row.

    Raises:
        DataError: All rows have the same time.
    """
    ordered = sorted(rows, key=lambda row: row.time)
    border = len(ordered) - max(1, round(fraction * len(ordered)))
    times = np.array([row.time for row in ordered])
    later = int(np.searchsorted(times, times[border], side="left"))
    if later == 0:
        later = int(np.searchsorted(times, times[border], side="right"))
    if later == len(ordered):
        raise DataError("--time-column: expected rows of several times, got one time for all")
    return ordered[:later], ordered[later:]


def fixed_folds(rows: Sequence[Row], levels: Sequence[int]) -> np.ndarray:
    """Return the fold of each row, (N,) 0 to 9, which is always the same.

    Texts are ranked by their SHA-256 within each stratum and distributed in turn, so that the
    strata keep their shares; rows with the same text except for case and blanks are in the same
    fold.

    Args:
        rows: N rows.
        levels: Stratum of each row, from `strata`.
    """
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        first.setdefault(text_key(row.text), index)
    dealt: dict[str, int] = {}
    for level in sorted(set(levels)):
        keys = [key for key, index in first.items() if levels[index] == level]
        keys.sort(key=lambda key: sha256(key.encode()).digest())
        dealt.update({key: rank % FOLDS for rank, key in enumerate(keys)})
    return np.array([dealt[text_key(row.text)] for row in rows])


def _fold(rows: Sequence[Row], fold: int, kind: TargetKind) -> Parts:
    """Return the parts of a fold."""
    folds = fixed_folds(rows, strata(rows, kind))
    after = (fold + 1) % FOLDS
    return Parts(
        [row for row, of in zip(rows, folds, strict=True) if of not in (fold, after)],
        [row for row, of in zip(rows, folds, strict=True) if of == after],
        [row for row, of in zip(rows, folds, strict=True) if of == fold],
    )


def _without(
    rows: Sequence[Row], others: Sequence[Row], part: str, by_group: bool, problems: Problems
) -> list[Row]:
    """Drop the rows whose text, or group if groups matter, is in another part."""
    texts = {text_key(row.text) for row in others}
    kept = [row for row in rows if text_key(row.text) not in texts]
    _note_dropped(rows, kept, part, "text", problems)
    if not by_group:
        return kept
    groups = {row.group for row in others if row.group is not None}
    apart = [row for row in kept if row.group not in groups]
    _note_dropped(kept, apart, part, "group", problems)
    return apart


def _note_dropped(
    before: Sequence[Row], after: Sequence[Row], part: str, what: str, problems: Problems
) -> None:
    left = set(map(id, after))
    dropped = [row for row in before if id(row) not in left]
    if not dropped:
        return
    places = [row.place for row in dropped[:_PLACES_SHOWN] if row.place]
    shown = (
        f" ({', '.join(places)}{' ...' if len(dropped) > len(places) else ''})" if places else ""
    )
    problems.note(
        f"{counted(len(dropped), f'{part} row')} dropped{shown}: their {what} is also held out "
        "elsewhere"
    )


def _time_note(column: str, *parts: Sequence[Row]) -> str:
    """State the first and last time of each part."""
    said = []
    seconds = max(abs(row.time) for rows in parts for row in rows) >= _LEAST_SECONDS
    for name, rows in zip(("training", "validation", "test"), parts, strict=True):
        times = [row.time for row in rows]
        said.append(f"{name} {_when(min(times), seconds)} to {_when(max(times), seconds)}")
    return f"split in the order of {column!r}: {', '.join(said)}"


def _when(time: float, seconds: bool) -> str:
    """Write a time in seconds since 1970, or a number such as 2024 or 20240531."""
    if not seconds:
        return f"{time:.15g}"
    try:
        return str(np.datetime64(int(time), "s")).replace("T", " ")
    except (ValueError, OverflowError):
        return f"{time:g}"
