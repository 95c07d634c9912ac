"""The rows of a run that goes on from another: the old ones in their parts, and new ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gru_training.continuing.config import Continuation
from gru_training.data.digest import data_digest
from gru_training.data.problems import Problems, counted
from gru_training.data.text_table import TextTable
from gru_training.errors import DataError, TrainingError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.continuing.fresh import require_varied, split_fresh, without_known
from gru_training.sentiment.data import SentimentData, labelled_data, read_rows, split_parts
from gru_training.sentiment.data_config import SentimentDataConfig
from gru_training.sentiment.rows import Row, SentimentRows, Target
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.sources.labelled_file import read_labelled_files, read_table
from gru_training.sentiment.split import Parts, far_from

LEAST_REPLAY = 0.3
"""Of the old training rows, by default; chosen on validation rows of MR."""
_NAMES_SHOWN = 8


def read_data(
    config: SentimentConfig, problems: Problems
) -> tuple[SentimentRows, SentimentData | None]:
    """Read the rows of a training, whether it is the first or goes on from a run, and split them.

    Args:
        config: Every setting.
        problems: Told of what is wrong with the rows.

    Returns:
        The rows before they are split, of a continuation the new ones; and the data, or None where
        the problems keep them from being trained on.

    Raises:
        DataError: Rows cannot be used.
    """
    if config.continued is not None:
        return _continued(config, config.continued, problems)
    source = read_rows(config.data, config.training.seed, problems)
    if problems.errors:
        return source, None
    parts = split_parts(source, config.data, config.training.seed, problems)
    return source, labelled_data(source, parts, problems)


def load_data(config: SentimentConfig) -> SentimentData:
    """As `read_data`; problems are errors.

    Raises:
        DataError: Rows cannot be used.
    """
    source = config.data.data if config.continued is None else config.continued.new_data
    problems = Problems(str(source or "grammar"), config.data.drop_bad)
    _, data = read_data(config, problems)
    problems.raise_errors()
    assert data is not None
    return data


class Known(NamedTuple):
    """The rows that a run was trained on and tested with."""

    source: SentimentRows
    parts: Parts


def continued_table(
    config: SentimentConfig, run: SentimentRun, table: TextTable, known: Known | None
) -> tuple[Known, SentimentData]:
    """The data of a run that goes on with rows in memory.

    Args:
        config: Of the continuation.
        run: To go on from.
        table: The new rows.
        known: Those of the run, where they are at hand; else they are read again, unless the
            continuation is to leave them alone.

    Returns:
        All rows, for what goes on from there in turn, and the data.

    Raises:
        DataError: Rows cannot be used.
    """
    assert config.continued is not None
    problems = Problems(table.name, config.data.drop_bad, unit="row")
    new = read_table(table, _of_new_rows(run, config, config.continued), problems, run.classes)
    _note_classes(run, new, problems)
    problems.raise_errors()
    parts = run, new, config, config.continued, problems
    source, joined, data = _data(*parts, known)
    return Known(source, joined), data


def _continued(
    config: SentimentConfig, continued: Continuation, problems: Problems
) -> tuple[SentimentRows, SentimentData | None]:
    run = SentimentRun.open(continued.from_run)
    new = _new_rows(run, config, continued, problems)
    if problems.errors:
        return new, None
    return new, _data(run, new, config, continued, problems)[-1]


def _data(
    run: SentimentRun,
    new: SentimentRows,
    config: SentimentConfig,
    continued: Continuation,
    problems: Problems,
    known: Known | None = None,
) -> tuple[SentimentRows, Parts, SentimentData]:
    source, parts, earlier = _joined(run, new, config, continued, problems, known)
    data = labelled_data(source, parts, problems)
    fresh = len(parts.train) - earlier["train"]
    share = continued.replay
    if share is None:
        share = min(1.0, max(LEAST_REPLAY, fresh / max(1, earlier["train"])))
    return source, parts, replace(data, earlier=earlier, replay=share)


def _new_rows(
    run: SentimentRun, config: SentimentConfig, continued: Continuation, problems: Problems
) -> SentimentRows:
    """Those of the file, with the run's classes first."""
    settings = _of_new_rows(run, config, continued)
    new = read_labelled_files(settings, problems, run.classes)
    _note_classes(run, new, problems)
    name = continued.new_data.name
    return replace(
        new,
        train=_placed(new.train, name),
        validation=None if new.validation is None else _placed(new.validation, name),
        test=None if new.test is None else _placed(new.test, name),
    )


def _of_new_rows(
    run: SentimentRun, config: SentimentConfig, continued: Continuation
) -> SentimentDataConfig:
    """How they are read."""
    return replace(
        config.data,
        data=continued.new_data,
        more_data=(),
        validation=None,
        test=None,
        phrases=False,
        target_type=run.kind,
    )


def _note_classes(run: SentimentRun, new: SentimentRows, problems: Problems) -> None:
    added = new.classes[len(run.classes) :]
    if added:
        shown = ", ".join(map(repr, added[:_NAMES_SHOWN]))
        more = " ..." if len(added) > _NAMES_SHOWN else ""
        what = "class" if run.kind == "class" else "label"
        problems.note(f"{counted(len(added), f'new {what}')}: {shown}{more}")


def _placed(rows: Sequence[Row], name: str) -> list[Row]:
    return [row._replace(place=f"{name} {row.place}") for row in rows]


def _joined(
    run: SentimentRun,
    new: SentimentRows,
    config: SentimentConfig,
    continued: Continuation,
    problems: Problems,
    known: Known | None = None,
) -> tuple[SentimentRows, Parts, dict[str, int]]:
    """All rows, by part, and how many of each part are old ones, which come first."""
    if known is not None:
        old, old_parts = known
    elif continued.only_new:
        old = SentimentRows(run.metrics["data"]["name"], run.classes, [], kind=run.kind)
        old_parts = Parts([], [], _stored_test_rows(run))
    else:
        old, old_parts = rows_of_run(run, "with --only-new it continues on the new rows alone")
    fresh = split_fresh(without_known(new, old_parts, problems), old_parts, config, problems)
    held = [*old_parts.validation, *old_parts.test]
    kept = far_from(fresh.train, held, config.data.drop_near_duplicates, problems)
    fresh = fresh._replace(train=kept)
    joined = replace(old, classes=new.classes)
    where = str(continued.new_data)
    if not fresh.train:
        raise DataError(f"{where}: expected new rows to train on, got none that are not known")
    parts = Parts(*(before + after for before, after in zip(old_parts, fresh, strict=True)))
    if continued.only_new:
        require_varied(parts, new, where)
    earlier = {name: len(rows) for name, rows in zip(Parts._fields, old_parts, strict=True)}
    return joined, parts, earlier


def rows_of_run(run: SentimentRun, way_out: str) -> Known:
    """The rows that a run was trained on and tested with, read again and recognised.

    Args:
        run: Any.
        way_out: What can be done without them, for messages.

    Raises:
        DataError: They are gone, or have changed.
    """
    if run.given is not None:
        raise DataError(
            f"{run.path} was trained in Python on rows in memory, which cannot be read again; "
            f"{way_out}"
        )
    config = run.config
    problems = Problems(str(config.data.data or "grammar"), config.data.drop_bad)
    try:
        if config.continued is not None:
            before = SentimentRun.open(config.continued.from_run)
            new = _new_rows(before, config, config.continued, problems)
            problems.raise_errors()
            source, parts, _ = _joined(before, new, config, config.continued, problems)
        else:
            source = read_rows(config.data, config.training.seed, problems)
            problems.raise_errors()
            parts = split_parts(source, config.data, config.training.seed, problems)
    except TrainingError as error:
        raise DataError(f"the rows of {run.path} cannot be read again ({error}); {way_out}") from (
            error
        )
    if not _recognised(run, labelled_data(source, parts, problems)):
        raise DataError(
            f"{problems.source}: expected the rows that {run.path} was trained on, got others; "
            f"restore them, or {way_out}"
        )
    return Known(source, parts)


def _recognised(run: SentimentRun, data: SentimentData) -> bool:
    """Whether these are the data of the run: by their digest, in older runs by test rows."""
    recorded = run.metrics["data"]
    if "digest" in recorded:
        return bool(recorded["digest"] == data_digest(data.contents()))
    counts = {name: len(part) for name, part in data.parts().items()}
    stored = tuple(row.text for row in run.test_predictions())
    return data.classes == run.classes and counts == recorded["rows"] and stored == data.test.texts


def _stored_test_rows(run: SentimentRun) -> list[Row]:
    """The test rows of a run, which it holds itself."""
    numbers = {name: number for number, name in enumerate(run.classes)}

    def target(label: object) -> Target:
        if run.kind == "number":
            return float(label)  # type: ignore[arg-type]
        if isinstance(label, list):
            return tuple(numbers[name] for name in label)
        return numbers[str(label)]

    return [Row(row.text, target(row.label)) for row in run.test_predictions()]
