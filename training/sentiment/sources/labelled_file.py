"""The user's own labelled texts, looked through for what spoils a training."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from training.data.label_names import misspellings, spellings
from training.data.problems import Problems, counted, lines_shown
from training.data.text_files import LabelledRow, read_text_file
from training.data.text_table import TextTable
from training.errors import DataError
from training.sentiment.config import SentimentDataConfig
from training.sentiment.sources.corpora import Row, text_key
from training.sentiment.sources.unlabelled import holds_vectors

_FEWEST_ROWS = 3
"""Of a class: training, validation and test need one each."""
_NAMES_SHOWN = 8
_MOSTLY = 0.5
_NO_LABELS = ("nan", "na", "n/a", "null")


def read_labelled_file(
    config: SentimentDataConfig, problems: Problems
) -> tuple[tuple[str, ...], list[Row]]:
    """Read a file of labelled texts, and leaves out and merges what the settings ask for.

    Args:
        config: The file, its columns, and what to drop or merge.
        problems: Told of all that is wrong with the rows.

    Returns:
        The names of the classes, and the rows with the numbers of theirs.

    Raises:
        DataError: The file cannot be read.
    """
    assert config.data is not None
    rows = read_text_file(config.data, config.text_column, config.label_column, problems)
    return usable_rows(rows, config, problems)


def read_table(
    table: TextTable, config: SentimentDataConfig, problems: Problems
) -> tuple[tuple[str, ...], list[Row], list[Row] | None, list[Row] | None]:
    """As `read_labelled_file`, of rows in memory; then those for validation and test.

    Raises:
        DataError: A label of those parts is none of the classes.
    """
    classes, train = usable_rows(_with_both(table.rows, problems), config, problems)
    parts = (
        None if part is None else _of_classes(_with_both(part, problems), classes)
        for part in (table.validation, table.test)
    )
    validation, test = parts
    problems.close_rows()
    return classes, train, validation, test


def usable_rows(
    rows: list[LabelledRow], config: SentimentDataConfig, problems: Problems
) -> tuple[tuple[str, ...], list[Row]]:
    """Leave out and merges what the settings ask for; arguments as above."""
    problems.close_rows()
    rows = _with_one_spelling(rows, config.merge_labels, problems)
    _note_texts(rows, config, problems)
    rows = _without_duplicates(rows, config.drop_duplicates, problems)
    rows = _without_small_classes(rows, config.drop_small_classes, problems)
    _note_labels(rows, problems)
    classes = _class_order({row.label for row in rows})
    return classes, _of_classes(rows, classes)


def _with_both(rows: Sequence[LabelledRow], problems: Problems) -> list[LabelledRow]:
    """The rows that have text and label."""
    for row in rows:
        if not row.text.strip():
            problems.bad_row("text", row.line, "the text is empty")
        elif not row.label:
            problems.bad_row("label", row.line, "the label is missing")
    return [row for row in rows if row.text.strip() and row.label]


def _of_classes(rows: Sequence[LabelledRow], classes: tuple[str, ...]) -> list[Row]:
    """The rows with the numbers of their classes."""
    numbers = {label: number for number, label in enumerate(classes)}
    unknown = {row.label for row in rows} - set(numbers)
    if unknown:
        raise DataError(
            "validation and test rows: expected the classes of the training rows, "
            f"{', '.join(map(repr, classes))}; got {', '.join(map(repr, sorted(unknown)))}"
        )
    return [Row(row.text, numbers[row.label]) for row in rows]


def class_problem(counts: Mapping[str, int], fewest: int = _FEWEST_ROWS) -> str | None:
    """What keeps rows of these classes from being trained on, if anything does.

    Args:
        counts: Rows by class.
        fewest: Rows that each class needs.
    """
    if len(counts) < 2:
        return f"expected at least two classes, got only {', '.join(map(repr, counts))}"
    small = {name: count for name, count in counts.items() if count < fewest}
    if not small:
        return None
    need = f"expected at least {fewest} (training, validation and test need one each)"
    if len(small) == 1:
        ((name, count),) = small.items()
        return f"class {name!r} has {counted(count, 'row')}, {need}"
    shown = ", ".join(f"{name!r} {count}" for name, count in list(small.items())[:_NAMES_SHOWN])
    more = " ..." if len(small) > _NAMES_SHOWN else ""
    text = f"{len(small):,} of {len(counts):,} classes have too few rows ({shown}{more}), {need}"
    if len(small) > _MOSTLY * len(counts):
        text += "; is --label-column the wrong one?"
    return text


def _with_one_spelling(
    rows: list[LabelledRow], merge: bool, problems: Problems
) -> list[LabelledRow]:
    counts = Counter(row.label for row in rows)
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
    return [row._replace(label=renamed.get(row.label, row.label)) for row in rows]


def _with_rows(label: str, counts: Mapping[str, int]) -> str:
    return f"{label!r} ({counted(counts[label], 'row')})"


def _note_labels(rows: Sequence[LabelledRow], problems: Problems) -> None:
    """Remarks on labels that were hardly meant."""
    counts = Counter(row.label for row in rows)
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


def _without_duplicates(
    rows: list[LabelledRow], drop: bool, problems: Problems
) -> list[LabelledRow]:
    """The first row of each text, none of texts with several labels; all rows without `drop`."""
    same: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        same[text_key(row.text)].append(number)
    against, again = list[list[int]](), list[int]()
    for group in same.values():
        if len({rows[number].label for number in group}) > 1:
            against.append(group)
        else:
            again += group[1:]
    if again:
        what = "dropped (--drop-duplicates)" if drop else "which --drop-duplicates drops"
        problems.note(
            f"{counted(len(again), 'row')} with the text and the label of another, {what}: "
            f"{lines_shown([rows[number].line for number in sorted(again)], problems.unit)}"
        )
    if against:
        first = against[0]
        labels = " and ".join(map(repr, sorted({rows[number].label for number in first})))
        what = "dropped (--drop-duplicates)" if drop else "which --drop-duplicates drops"
        problems.note(
            f"{counted(len(against), 'text')} with more than one label, {what}; the first, on "
            f"{lines_shown([rows[number].line for number in first], problems.unit)}: {labels}"
        )
    if not drop:
        return rows
    unwanted = set(again).union(*against)
    return [row for number, row in enumerate(rows) if number not in unwanted]


def _without_small_classes(
    rows: list[LabelledRow], drop: bool, problems: Problems
) -> list[LabelledRow]:
    counts = Counter(row.label for row in rows)
    if not counts:
        if not problems.errors:
            problems.error(f"{problems.source}: no row is left")
        return rows
    small = {label: count for label, count in counts.items() if count < _FEWEST_ROWS}
    if drop and small:
        rows = [row for row in rows if row.label not in small]
        shown = ", ".join(map(repr, sorted(small)[:_NAMES_SHOWN]))
        more = " ..." if len(small) > _NAMES_SHOWN else ""
        problems.note(
            f"{counted(len(small), 'class')} with fewer than {_FEWEST_ROWS} rows dropped, "
            f"{counted(sum(small.values()), 'row')} in all (--drop-small-classes): {shown}{more}"
        )
        counts = Counter(row.label for row in rows)
    problem = class_problem(dict(sorted(counts.items())))
    if problem:
        droppable = len(counts) - len(small) >= 2 and not drop
        problems.error(
            f"{problems.source}: {problem}", "--drop-small-classes" if droppable else None
        )
    return rows


def _note_texts(
    rows: Sequence[LabelledRow], config: SentimentDataConfig, problems: Problems
) -> None:
    """Remarks on texts that are hardly prose."""
    numbers = [row.line for row in rows if _is_number(row.text)]
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _class_order(labels: set[str]) -> tuple[str, ...]:
    """Numbers by value, names by alphabet; nan is no number, and has no place among them."""
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        return tuple(sorted(labels))
    if any(map(math.isnan, values.values())):
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (values[label], label)))
