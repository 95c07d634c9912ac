"""The new rows of a run that goes on: those that it does not know, by part."""

from dataclasses import replace

import numpy as np

from gru_training.data.problems import Problems, counted
from gru_training.errors import DataError
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.rows import Row, SentimentRows, Target, numbers_of, text_key
from gru_training.sentiment.sources.label_problems import require_targets
from gru_training.sentiment.split import Parts, split


def without_known(new: SentimentRows, old: Parts, problems: Problems) -> SentimentRows:
    """The new rows whose text is in no old part: the model knows those, or is tested on them."""
    labels: dict[str, set[Target]] = {}
    for part in old:
        for row in part:
            labels.setdefault(text_key(row.text), set()).add(row.label)
    known = [row for row in new.all_rows if text_key(row.text) in labels]
    if not known:
        return new
    other = sum(row.label not in labels[text_key(row.text)] for row in known)
    problems.note(
        f"{counted(len(known), 'new row')} dropped: the text is among the old rows"
        + (f", {other:,} of them with another label there" if other else "")
    )

    def fresh(rows: list[Row] | None) -> list[Row] | None:
        if rows is None:
            return None
        return [row for row in rows if text_key(row.text) not in labels]

    return replace(
        new, train=fresh(new.train) or [], validation=fresh(new.validation), test=fresh(new.test)
    )


def split_fresh(
    new: SentimentRows, old: Parts, config: SentimentConfig, problems: Problems
) -> Parts:
    """The new rows by part; a group of which there are old rows stays in their part."""
    place: dict[str | None, int] = {
        row.group: number
        for number, part in enumerate(old)
        for row in part
        if row.group is not None and config.data.group_column is not None
    }
    fixed = tuple([row for row in new.train if place.get(row.group) == k] for k in range(3))
    free = [row for row in new.train if row.group not in place]
    if not free:
        return Parts(*fixed)
    rng = np.random.default_rng(config.data.drawn_with(config.training.seed))
    drawn = split(replace(new, train=free), config.data, rng, problems)
    return Parts(*(some + more for some, more in zip(fixed, drawn, strict=True)))


def require_varied(parts: Parts, new: SentimentRows, where: str) -> None:
    """Raise DataError where new rows alone are too few to learn from."""
    if not parts.validation:
        raise DataError(f"{where}: expected enough rows to hold some out for validation, got few")
    if new.kind == "number":
        require_targets(parts.train, new, where, 1)
        return
    there = sorted({number for row in parts.train for number in numbers_of(row)})
    if new.kind == "class" and len(there) < 2:
        raise DataError(
            f"{where}: expected rows of at least two classes with --only-new, got only "
            f"{', '.join(repr(new.classes[number]) for number in there)}"
        )
