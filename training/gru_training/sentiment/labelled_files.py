"""Labelled texts of users, in files or in memory: reading, checking, filtering and merging."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from gru_training.data.label_cells import LabelCells, TargetKind, is_number
from gru_training.data.label_names import misspellings, separator_of, spellings
from gru_training.data.problems import Problems, counted, lines_shown
from gru_training.data.text_files import LabelledRow, TextTable, read_text_file
from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.corpora import holds_vectors
from gru_training.sentiment.rows import Row, SentimentRows, Target, numbers_of, text_key
from gru_training.tables.numbers import MISSING
from gru_training.words.token_count import holds_words, may_be_empty, token_count

_NAMES_SHOWN = 8
_MAX_ODD_SHARE = 0.5
_NO_LABELS = ("nan", "na", "n/a", "null")


def _usable_rows(
    rows: list[LabelledRow],
    kind: TargetKind,
    config: SentimentDataConfig,
    problems: Problems,
    fewest: int,
) -> list[LabelledRow]:
    """Drop and merge rows as the settings ask; each class needs `fewest` of them."""
    _note_texts(rows, config, problems)
    rows = _without_duplicates(rows, kind, config.drop_duplicates, problems)
    if kind == "number":
        _note_numbers(rows, problems)
        return rows
    rows = _without_small_classes(rows, kind, config.drop_small_classes, problems, fewest)
    _note_labels(rows, kind, problems)
    return rows


def label_counts(rows: Sequence[LabelledRow]) -> Counter[str]:
    """Count rows by class or label."""
    return Counter(name for row in rows for name in row.labels)


def require_targets(rows: Sequence[Row], source: SentimentRows, where: str, fewest: int) -> None:
    """Check that there are enough rows to train on.

    Args:
        rows: Rows to train on.
        source: Says what they are labelled with.
        where: File or folder, named in the error message.
        fewest: Rows that each class needs.

    Raises:
        DataError: There are too few, or they all have the same target.
    """
    if source.kind == "number":
        if len({row.label for row in rows}) < 2:
            got = f"{len(rows):,} rows of one" if rows else "no row with one"
            raise DataError(f"{where}: expected different numbers, got {got}")
        return
    counts = dict.fromkeys(range(len(source.classes)), 0)
    for row in rows:
        for number in numbers_of(row):
            counts[number] += 1
    named = {source.classes[number]: count for number, count in counts.items()}
    problem = _class_problem(named, fewest, source.kind)
    if problem:
        raise DataError(f"{where}: {problem}")


def _class_problem(
    counts: Mapping[str, int], fewest: int, kind: TargetKind = "class"
) -> str | None:
    """State why rows of these classes cannot be trained on; None if they can."""
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
    shown = _first(f"{name!r} {count}" for name, count in small.items())
    text = f"{len(small):,} of {len(counts):,} {plural} have too few rows ({shown}), {need}"
    if len(small) > _MAX_ODD_SHARE * len(counts):
        numbers = kind == "class" and all(map(is_number, counts))
        text += (
            "; if they are quantities, --target-type number learns them"
            if numbers
            else "; is --label-column the wrong one?"
        )
    return text


def _first(names: Iterable[str]) -> str:
    """List the first few of some names."""
    listed = list(names)
    return ", ".join(listed[:_NAMES_SHOWN]) + (" ..." if len(listed) > _NAMES_SHOWN else "")


def class_order(labels: set[str]) -> tuple[str, ...]:
    """Order numbers by value and names by alphabet.

    Nan is not a number and has no place among them.
    """
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        values = {}
    if not values or any(map(math.isnan, values.values())):
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (values[label], label)))


def _with_one_spelling(
    rows: list[LabelledRow],
    held: Mapping[str, list[LabelledRow] | None],
    merge: bool,
    problems: Problems,
) -> tuple[list[LabelledRow], Mapping[str, list[LabelledRow] | None]]:
    """Note labels that differ in spelling only, or merge them, in the held-out parts, too."""
    parts = [rows, *(part for part in held.values() if merge and part)]
    counts = label_counts([row for part in parts for row in part])
    renamed: dict[str, str] = {}
    for first, *others in spellings(counts):
        seen = ", ".join(_with_rows(label, counts) for label in (first, *others))
        if merge:
            problems.note(f"labels read as {first!r} (--merge-labels): {seen}")
            renamed.update(dict.fromkeys(others, first))
        else:
            problems.note(
                f"labels that differ in spelling only are classes of their own: {seen}; "
                "--merge-labels makes one of them"
            )
    if not renamed:
        return rows, held

    def merged(part: list[LabelledRow]) -> list[LabelledRow]:
        names = ((renamed.get(name, name) for name in row.labels) for row in part)
        pairs = zip(part, names, strict=True)
        return [row._replace(labels=tuple(dict.fromkeys(labels))) for row, labels in pairs]

    return merged(rows), {name: part and merged(part) for name, part in held.items()}


def _with_rows(label: str, counts: Mapping[str, int]) -> str:
    return f"{label!r} ({counted(counts[label], 'row')})"


def _note_labels(rows: Sequence[LabelledRow], kind: TargetKind, problems: Problems) -> None:
    """Note labels that were probably not intended."""
    counts = label_counts(rows)
    for label, other in misspellings(counts):
        problems.note(
            f"labels that look alike: {_with_rows(label, counts)} may be a misspelling of "
            f"{_with_rows(other, counts)}"
        )
    one_each = all(len(row.labels) < 2 for row in rows)
    if one_each and (found := separator_of(counts)) is not None:
        separator, label = found
        problems.note(
            f"labels such as {label!r} look like several in one cell; --label-separator "
            f"'{separator}' reads them"
        )
    for label in sorted(label for label in counts if label.casefold() in _NO_LABELS):
        problems.note(
            f"the label {_with_rows(label, counts)} counts as a class; leave the cells empty if it "
            "means that the label is missing"
        )
    if kind == "labels" and len(rows) > 1:
        for label in sorted(label for label in counts if counts[label] == len(rows)):
            problems.note(
                f"every row has the label {_with_rows(label, counts)}, so the model cannot learn "
                "when it does not apply"
            )
    unlabelled = [row.line for row in rows if not row.labels]
    if unlabelled:
        problems.note(
            f"{counted(len(unlabelled), 'row')} without any label, "
            f"{lines_shown(unlabelled, problems.unit)}: read as texts to which no label applies"
        )


def _without_duplicates(
    rows: list[LabelledRow], kind: TargetKind, drop: bool, problems: Problems
) -> list[LabelledRow]:
    """Keep the first row of each text, and none of texts with several labels.

    All rows without `drop`.
    """
    same: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        same[text_key(row.text)].append(number)
    against, again = list[list[int]](), list[int]()
    for group in same.values():
        if len({frozenset(rows[number].labels) for number in group}) > 1:
            against.append(group)
        else:
            again += group[1:]
    done = "dropped (--drop-duplicates)" if drop else "which --drop-duplicates drops"
    if again:
        problems.note(
            f"{counted(len(again), 'row')} with the text and the label of another, {done}: "
            f"{lines_shown([rows[number].line for number in sorted(again)], problems.unit)}"
        )
    if against:
        differing = "more than one label" if kind == "class" else "different labels"
        first = [rows[number] for number in against[0]]
        labels = sorted({", ".join(row.labels) for row in first})
        problems.note(
            f"{counted(len(against), 'text')} with {differing}, {done}; the first, on "
            f"{lines_shown([row.line for row in first], problems.unit)}: "
            f"{' and '.join(map(repr, labels))}"
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
    counts = label_counts(rows)
    if not counts:
        if not problems.errors:
            problems.error(f"{problems.source}: no row is left")
        return rows
    small = {label: count for label, count in counts.items() if count < fewest}
    if drop and small:
        rows = [
            row._replace(labels=tuple(name for name in row.labels if name not in small))
            for row in rows
            if kind == "labels" or row.labels[0] not in small
        ]
        problems.note(
            f"{counted(len(small), 'class')} with fewer than {fewest} rows dropped, "
            f"{counted(sum(small.values()), 'row')} in all (--drop-small-classes): "
            f"{_first(map(repr, sorted(small)))}"
        )
        counts = label_counts(rows)
    problem = _class_problem(dict(sorted(counts.items())), fewest, kind)
    if problem:
        droppable = len(counts) - len(small) >= (2 if kind == "class" else 1) and not drop
        problems.error(
            f"{problems.source}: {problem}", "--drop-small-classes" if droppable else None
        )
    return rows


def _note_texts(
    rows: Sequence[LabelledRow], config: SentimentDataConfig, problems: Problems
) -> None:
    """Note texts that do not look like prose."""
    numbers = [row.line for row in rows if is_number(row.text)]
    if len(numbers) > _MAX_ODD_SHARE * len(rows):
        which = "all texts" if len(numbers) == len(rows) else f"{len(numbers):,} of the texts"
        problems.note(
            f"{which} are numbers, {lines_shown(numbers, problems.unit)}; is --text-column the "
            "wrong one?"
        )
    if holds_vectors([row.text for row in rows]):
        problems.note("the texts are words with many numbers behind them, as in files of vectors")
    most, cleaned = config.max_tokens, config.cleaning is not False
    long = sum(len(row.text) > most and token_count(row.text, cleaned) > most for row in rows)
    if long:
        problems.note(
            f"{counted(long, 'text')} of more than {most:,} tokens, which are words "
            "and signs, of which only the last are read (--max-tokens)"
        )
    wordless = [row for row in rows if not holds_words(row.text)]
    if wordless:
        problems.note(
            f"{counted(len(wordless), 'text')} without a letter or digit, such as "
            f"{wordless[0].text.strip()!r:.40}, "
            f"{lines_shown([row.line for row in wordless], problems.unit)}"
        )


def _note_numbers(rows: Sequence[LabelledRow], problems: Problems) -> None:
    """Note numbers to estimate that look like classes."""
    different = {float(row.labels[0]) for row in rows}
    if len(different) == 2:
        shown = " and ".join(f"{value:g}" for value in sorted(different))
        problems.note(
            f"the numbers to estimate are {shown} alone; as classes they are told apart better "
            "(--target-type class)"
        )


_PARTS = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
"""Parts of a split by the names that a column may use for them."""
_FEWEST_ROWS = 3
"""Fewest rows of a class: training, validation and test need one each."""
_NUMBER = "number"
_A_TIME = ", such as 2024-05-31 13:00"


def read_labelled_files(config: SentimentDataConfig, problems: Problems) -> SentimentRows:
    """Read files of labelled texts, and leave out and merge what the settings ask for.

    Args:
        config: The files, their columns, and what to drop or merge.
        problems: Collector of all that is wrong with the rows.

    Raises:
        DataError: A file cannot be read.
    """
    assert config.data is not None
    labels = LabelCells(config.target_type, config.label_columns, config.label_separator)
    rows, labels = _read(config.data, config, labels, problems)
    for path in config.more_data:
        rows += _read(path, config, labels, problems)[0]
    held: dict[str, list[LabelledRow] | None] = {
        name: None if path is None else _read(path, config, labels, problems)[0]
        for name, path in (("validation", config.validation), ("test", config.test))
    }
    if config.part_column is not None:
        rows, held = _by_part(rows, config.part_column, problems)
    name = config.data.name.split(".")[0]
    return _labelled(name, rows, held, labels.kind or "class", config, problems)


def _read(
    path: Path, config: SentimentDataConfig, labels: LabelCells, problems: Problems
) -> tuple[list[LabelledRow], LabelCells]:
    """Read the rows of one file with their places in it, and how their labels are written."""
    first = path == config.data
    found = problems if first else Problems(str(path), config.drop_bad)
    wanted = {"part": config.part_column, "group": config.group_column, "time": config.time_column}
    further = {meaning: column for meaning, column in wanted.items() if column is not None}
    named = config.text_column, config.label_column
    rows, labels = read_text_file(
        path, *named, found, labels, further, config.text_format, problems.columns
    )
    rows = _with_tokens(rows, config, found)
    if config.time_column is not None:
        rows = _with_times(rows, path, config.time_column, found)
    found.close_rows(bool(rows))
    if not first:
        problems.absorb(found)
    unit = found.unit if first else f"{path.name} {found.unit}"
    return [_placed(row, unit) for row in rows], labels


def read_table(table: TextTable, config: SentimentDataConfig, problems: Problems) -> SentimentRows:
    """Read the rows of a table in memory, like `read_labelled_files`."""

    def usable(part: Sequence[LabelledRow]) -> list[LabelledRow]:
        rows = _with_tokens(_with_both(part, table.kind, problems), config, problems)
        if config.time_column is not None:
            rows = _with_times(rows, Path(table.name), config.time_column, problems)
        return [_placed(row, "row") for row in rows]

    for note in table.notes:
        problems.note(note)
    problems.columns = {name: table.given[name] for name in ("text",) if table.given.get(name)}
    rows = usable(table.rows)
    held = {
        name: None if part is None else usable(part)
        for name, part in (("validation", table.validation), ("test", table.test))
    }
    problems.close_rows(bool(rows))
    return _labelled(table.name, rows, held, table.kind, config, problems)


def _labelled(
    name: str,
    rows: list[LabelledRow],
    held: Mapping[str, list[LabelledRow] | None],
    kind: TargetKind,
    config: SentimentDataConfig,
    problems: Problems,
) -> SentimentRows:
    """Convert the rows' labels to numbers of classes; `held` has the held-out rows, if any."""
    given = [part for part in held.values() if part is not None]
    if kind != "number":
        rows, held = _with_one_spelling(rows, held, config.merge_labels, problems)
    rows = _usable_rows(rows, kind, config, problems, _FEWEST_ROWS - len(given))
    classes = (
        (config.label_column or _NUMBER,)
        if kind == "number"
        else tuple(class_order(set(label_counts(rows))))
    )
    parts: dict[str, list[Row] | None] = {"validation": None, "test": None}
    for part, path in (("validation", config.validation), ("test", config.test)):
        wanted = held[part]
        if wanted is None:
            continue
        if kind != "number" and classes:
            found = Problems(str(path or config.data or f"{name}, {part}"), config.drop_bad)
            wanted = _of_known_classes(wanted, classes, kind, found)
            found.drop_bad &= bool(wanted)  # or no row would be left
            found.close_rows(bool(wanted))
            problems.absorb(found)
        parts[part] = _of_classes(wanted, classes, kind)
    train = _of_classes(rows, classes, kind)
    return SentimentRows(
        name, classes, train, parts["validation"], parts["test"], kind=kind, own=True
    )


def _placed(row: LabelledRow, unit: str) -> LabelledRow:
    return row._replace(further={**row.further, "place": f"{unit} {row.line}"})


def _by_part(
    rows: Sequence[LabelledRow], column: str, problems: Problems
) -> tuple[list[LabelledRow], dict[str, list[LabelledRow] | None]]:
    """Separate training rows from the others by part.

    None for a part that the column does not name.
    """
    parts: dict[str, list[LabelledRow]] = defaultdict(list)
    for row in rows:
        name = (row.further.get("part") or "").strip()
        part = _PARTS.get(name.lower())
        if part is None:
            problems.bad_row(
                "part",
                row.line,
                f"expected train, validation or test in column {column!r}, got {name!r:.40}",
            )
        else:
            parts[part].append(row)
    problems.close_rows()
    return parts["train"], {part: parts.get(part) for part in ("validation", "test")}


def _with_times(
    rows: list[LabelledRow], path: Path, column: str, problems: Problems
) -> list[LabelledRow]:
    """Keep the rows with a readable time: the number in the cell, or else seconds since 1970."""
    cells = [(row.further.get("time") or "").strip() for row in rows]
    try:
        numbers = np.array([math.nan if cell.lower() in MISSING else float(cell) for cell in cells])
    except ValueError:
        lines = [row.line for row in rows]
        from gru_training.data.time_axis import TimeCells, parse_times

        cells_of_file = TimeCells(str(path), column, cells, lines, problems.unit, _A_TIME)
        times = parse_times(cells_of_file, None, problems, ordered=False).times
        numbers = np.where(np.isnat(times), np.nan, times.astype("M8[s]").astype(np.int64))
    else:
        for row in np.flatnonzero(~np.isfinite(numbers)):
            problem = f"expected a time{_A_TIME}, got {cells[row]!r}"
            problems.bad_row("time", rows[row].line, problem, column)
    return [
        row._replace(further={**row.further, "time": repr(float(number))})
        for row, number in zip(rows, numbers, strict=True)
        if np.isfinite(number)
    ]


def _with_both(
    rows: Sequence[LabelledRow], kind: TargetKind, problems: Problems
) -> list[LabelledRow]:
    """Keep the rows with text and label; any number of labels may be none."""
    kept = []
    for row in rows:
        if not row.text.strip():
            problems.bad_row("text", row.line, "the text is empty")
        elif not row.labels and kind != "labels":
            problems.bad_row("label", row.line, "the label is missing")
        else:
            kept.append(row)
    return kept


def _with_tokens(
    rows: list[LabelledRow], config: SentimentDataConfig, problems: Problems
) -> list[LabelledRow]:
    """Keep the rows in whose texts a model reads at least one token."""
    kept = []
    for row in rows:
        if may_be_empty(row.text) and not token_count(row.text, config.cleaning is not False):
            shown = row.text.strip().encode("unicode_escape").decode("ascii")
            problems.bad_row(
                "tokens", row.line, f"the text {shown!r:.40} is empty once it is cleaned"
            )
        else:
            kept.append(row)
    return kept


def _of_known_classes(
    part: Sequence[LabelledRow],
    classes: tuple[str, ...],
    kind: TargetKind,
    found: Problems,
) -> list[LabelledRow]:
    """Keep the rows of a held-out part whose classes occur in the training rows."""
    known, rows, shown = set(classes), [], _first(map(repr, classes))
    what = "class" if kind == "class" else "label"
    for row in part:
        unknown = set(row.labels) - known
        if unknown:
            found.unit = (row.further["place"] or "").split()[-2]
            found.bad_row(
                f"unknown {min(unknown)}",
                row.line,
                f"expected a {what} of the training rows, {shown}, got {min(unknown)!r}",
            )
        else:
            rows.append(row)
    return rows


def _of_classes(
    rows: Sequence[LabelledRow],
    classes: tuple[str, ...],
    kind: TargetKind,
) -> list[Row]:
    """Convert the rows' classes to numbers."""
    numbers = {label: number for number, label in enumerate(classes)}

    def target(row: LabelledRow) -> Target:
        if kind == "number":
            return float(row.labels[0])
        found = tuple(numbers[name] for name in row.labels)
        return found[0] if kind == "class" else found

    return [
        Row(
            row.text,
            target(row),
            row.further.get("group") or None,
            row.further.get("place") or "",
            float(row.further.get("time") or 0),
            float(row.further.get("weight") or 1),
        )
        for row in rows
    ]
