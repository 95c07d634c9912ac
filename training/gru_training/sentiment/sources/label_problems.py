"""What is wrong with labelled rows, told, and left out or merged where the settings ask for it."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from gru_training.data.label_cells import TargetKind, is_number, names_in, several
from gru_training.data.label_names import misspellings, spellings
from gru_training.data.problems import Problems, counted, lines_shown
from gru_training.data.text_files import LabelledRow
from gru_training.errors import DataError
from gru_training.sentiment.data_config import SentimentDataConfig
from gru_training.sentiment.rows import Row, SentimentRows, numbers_of, text_key
from gru_training.sentiment.sources.unlabelled import holds_vectors

_NAMES_SHOWN = 8
_MOSTLY = 0.5
_NO_LABELS = ("nan", "na", "n/a", "null")


def usable_rows(
    rows: list[LabelledRow],
    kind: TargetKind,
    config: SentimentDataConfig,
    problems: Problems,
    fewest: int,
) -> list[LabelledRow]:
    """Leave out and merge what the settings ask for.

    Args:
        rows: Read, without those that cannot be used.
        kind: Of their labels.
        config: What to drop or merge.
        problems: Told of all that is wrong with the rows.
        fewest: Rows that each class needs.
    """
    if kind != "number":
        rows = _with_one_spelling(rows, kind, config.merge_labels, problems)
    _note_texts(rows, config, problems)
    rows = _without_duplicates(rows, kind, config.drop_duplicates, problems)
    if kind == "number":
        _note_numbers(rows, problems)
        return rows
    rows = _without_small_classes(rows, kind, config.drop_small_classes, problems, fewest)
    _note_labels(rows, kind, problems)
    return rows


def label_counts(rows: Sequence[LabelledRow], kind: TargetKind) -> Counter[str]:
    """Rows by class, or by label where a row may have several."""
    return Counter(name for row in rows for name in label_names(row, kind))


def label_names(row: LabelledRow, kind: TargetKind) -> tuple[str, ...]:
    """The class of a row, or its labels."""
    return names_in(row.label) if kind == "labels" else (row.label,)


def require_targets(rows: Sequence[Row], source: SentimentRows, where: str, fewest: int) -> None:
    """Check that rows suffice to train on.

    Args:
        rows: To train on.
        source: Says what they are labelled with.
        where: They are, for the error.
        fewest: Rows that each class needs.

    Raises:
        DataError: There are too few, or they all have the same target.
    """
    if source.kind == "number":
        if len({row.label for row in rows}) < 2:
            raise DataError(f"{where}: expected different numbers, got {len(rows)} rows of one")
        return
    counts = dict.fromkeys(range(len(source.classes)), 0)
    for row in rows:
        for number in numbers_of(row):
            counts[number] += 1
    named = {source.classes[number]: count for number, count in counts.items()}
    problem = class_problem(named, fewest, source.kind)
    if problem:
        raise DataError(f"{where}: {problem}")


def class_problem(counts: Mapping[str, int], fewest: int, kind: TargetKind = "class") -> str | None:
    """What keeps rows of these classes from being trained on, if anything does.

    Args:
        counts: Rows by class.
        fewest: Rows that each class needs.
        kind: Labels need not be two.
    """
    what, plural = ("label", "labels") if kind == "labels" else ("class", "classes")
    if len(counts) < (1 if kind == "labels" else 2):
        found = ", ".join(map(repr, counts)) or "none"
        return f"expected at least two classes, got only {found}"
    small = {name: count for name, count in counts.items() if count < fewest}
    if not small:
        return None
    need = f"expected at least {fewest}"
    if fewest > 1:
        need += " (training, validation and test need one each)"
    if len(small) == 1:
        ((name, count),) = small.items()
        return f"{what} {name!r} has {counted(count, 'row')}, {need}"
    shown = ", ".join(f"{name!r} {count}" for name, count in list(small.items())[:_NAMES_SHOWN])
    more = " ..." if len(small) > _NAMES_SHOWN else ""
    text = f"{len(small):,} of {len(counts):,} {plural} have too few rows ({shown}{more}), {need}"
    if len(small) > _MOSTLY * len(counts):
        text += "; is --label-column the wrong one?"
    return text


def class_order(labels: set[str]) -> tuple[str, ...]:
    """Numbers by value, names by alphabet; nan is no number, and has no place among them."""
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        return tuple(sorted(labels))
    if any(map(math.isnan, values.values())):
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (values[label], label)))


def _with_one_spelling(
    rows: list[LabelledRow], kind: TargetKind, merge: bool, problems: Problems
) -> list[LabelledRow]:
    counts = label_counts(rows, kind)
    renamed = {}
    for first, *others in spellings(counts):
        seen = ", ".join(
            f"{label!r} ({counted(counts[label], 'row')})" for label in (first, *others)
        )
        if merge:
            problems.note(f"labels read as {first!r} (--merge-labels): {seen}")
            renamed.update(dict.fromkeys(others, first))
        else:
            problems.note(
                f"labels that differ in spelling only are classes of their own: {seen}; "
                "--merge-labels makes one of them"
            )
    if not renamed:
        return rows
    if kind == "class":
        return [row._replace(label=renamed.get(row.label, row.label)) for row in rows]
    return [
        row._replace(label=several(renamed.get(name, name) for name in names_in(row.label)))
        for row in rows
    ]


def _with_rows(label: str, counts: Mapping[str, int]) -> str:
    return f"{label!r} ({counted(counts[label], 'row')})"


def _note_labels(rows: Sequence[LabelledRow], kind: TargetKind, problems: Problems) -> None:
    """Remarks on labels that were hardly meant."""
    counts = label_counts(rows, kind)
    for label, other in misspellings(counts):
        problems.note(
            f"labels that look alike: {_with_rows(label, counts)} may be a misspelling of "
            f"{_with_rows(other, counts)}"
        )
    for label in sorted(label for label in counts if label.casefold() in _NO_LABELS):
        problems.note(
            f"the label {_with_rows(label, counts)} counts as a class; leave the cells empty if it "
            "means that the label is missing"
        )
    if kind == "labels" and len(rows) > 1:
        for label in sorted(label for label in counts if counts[label] == len(rows)):
            problems.note(
                f"the label {_with_rows(label, counts)} stands on every row, which tells nothing "
                "of the rows on which it would not"
            )
    unlabelled = [row.line for row in rows if kind == "labels" and not names_in(row.label)]
    if unlabelled:
        problems.note(
            f"{counted(len(unlabelled), 'row')} without any label, "
            f"{lines_shown(unlabelled, problems.unit)}: read as texts to which no label applies"
        )


def _without_duplicates(
    rows: list[LabelledRow], kind: TargetKind, drop: bool, problems: Problems
) -> list[LabelledRow]:
    """The first row of each text, none of texts with several labels; all rows without `drop`."""
    same: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        same[text_key(row.text)].append(number)
    against, again = list[list[int]](), list[int]()
    for group in same.values():
        if len({frozenset(label_names(rows[number], kind)) for number in group}) > 1:
            against.append(group)
        else:
            again += group[1:]
    if again:
        what = "dropped (--drop-duplicates)" if drop else "which --drop-duplicates drops"
        problems.note(
            f"{counted(len(again), 'row')} with the text and the label of another, {what}: "
            f"{lines_shown([rows[number].line for number in sorted(again)], problems.unit)}"
        )
    differing = "more than one label" if kind == "class" else "different labels"
    if against:
        first = against[0]
        different = {", ".join(label_names(rows[number], kind)) for number in first}
        labels = " and ".join(map(repr, sorted(different)))
        what = "dropped (--drop-duplicates)" if drop else "which --drop-duplicates drops"
        problems.note(
            f"{counted(len(against), 'text')} with {differing}, {what}; the first, on "
            f"{lines_shown([rows[number].line for number in first], problems.unit)}: {labels}"
        )
    if not drop:
        return rows
    unwanted = set(again).union(*against)
    return [row for number, row in enumerate(rows) if number not in unwanted]


def _without_small_classes(
    rows: list[LabelledRow],
    kind: TargetKind,
    drop: bool,
    problems: Problems,
    fewest: int,
) -> list[LabelledRow]:
    counts = label_counts(rows, kind)
    if not counts:
        if not problems.errors:
            problems.error(f"{problems.source}: no row is left")
        return rows
    small = {label: count for label, count in counts.items() if count < fewest}
    if drop and small:
        rows = _without_labels(rows, kind, small)
        shown = ", ".join(map(repr, sorted(small)[:_NAMES_SHOWN]))
        more = " ..." if len(small) > _NAMES_SHOWN else ""
        problems.note(
            f"{counted(len(small), 'class')} with fewer than {fewest} rows dropped, "
            f"{counted(sum(small.values()), 'row')} in all (--drop-small-classes): {shown}{more}"
        )
        counts = label_counts(rows, kind)
    problem = class_problem(dict(sorted(counts.items())), fewest, kind)
    if problem:
        droppable = len(counts) - len(small) >= (2 if kind == "class" else 1) and not drop
        problems.error(
            f"{problems.source}: {problem}", "--drop-small-classes" if droppable else None
        )
    return rows


def _without_labels(
    rows: list[LabelledRow], kind: TargetKind, unwanted: Mapping[str, int]
) -> list[LabelledRow]:
    """The rows of other classes; with several labels all rows, without these labels."""
    if kind == "class":
        return [row for row in rows if row.label not in unwanted]
    return [
        row._replace(label=several(name for name in names_in(row.label) if name not in unwanted))
        for row in rows
    ]


def _note_texts(
    rows: Sequence[LabelledRow], config: SentimentDataConfig, problems: Problems
) -> None:
    """Remarks on texts that are hardly prose."""
    numbers = [row.line for row in rows if is_number(row.text)]
    if len(numbers) > _MOSTLY * len(rows):
        which = "all texts" if len(numbers) == len(rows) else f"{len(numbers):,} of the texts"
        problems.note(
            f"{which} are numbers, {lines_shown(numbers, problems.unit)}; is --text-column the "
            "wrong one?"
        )
    if holds_vectors([row.text for row in rows]):
        problems.note("the texts are words with many numbers behind them, as in files of vectors")
    long = sum(len(row.text.split()) > config.max_tokens for row in rows)
    if long:
        problems.note(
            f"{counted(long, 'text')} of more than {config.max_tokens:,} words, of which only the "
            "last are read (--max-tokens)"
        )


def _note_numbers(rows: Sequence[LabelledRow], problems: Problems) -> None:
    """Remarks on numbers to estimate that look like classes."""
    different = {float(row.label) for row in rows}
    if len(different) == 2:
        shown = " and ".join(f"{value:g}" for value in sorted(different))
        problems.note(
            f"the numbers to estimate are {shown} alone; as classes they are told apart better "
            "(--target-type class)"
        )
