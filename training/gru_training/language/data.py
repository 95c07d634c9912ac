"""Documents split into those to train on, to validate on and to test on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gru_training.data.problems import counted
from gru_training.errors import DataError
from gru_training.language.config import LanguageDataConfig
from gru_training.language.sources import (
    BUILT_IN,
    built_in_documents,
    is_imdb,
    read_documents,
    read_imdb,
)

_FEW = 20
"""Fewer documents are cut, each into three parts, in place of being dealt out whole."""


@dataclass(frozen=True)
class LanguageData:
    """Documents ready for training."""

    name: str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What a reader of the report should know."""

    def parts(self) -> dict[str, tuple[str, ...]]:
        """The documents by part: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def contents(self) -> Iterator[str | np.ndarray]:
        """All that the data say, for a digest."""
        for part, documents in self.parts().items():
            yield part
            yield from documents


def load_language_data(config: LanguageDataConfig, seed: int) -> LanguageData:
    """Read the documents, and split them unless files for all parts are given.

    No document that is held out from drawn parts is also trained on: copies of it are left out.

    Args:
        config: Where the documents are, and how to split them.
        seed: Of the training; also of the split, where the settings name no other for it.

    Raises:
        DataError: The source cannot be used; says why.
    """
    notes: list[str] = []
    test = None if config.test is None else read_documents(config.test, config, notes)
    validation = None
    if config.validation is not None:
        validation = read_documents(config.validation, config, notes)
    if config.data is None:
        name, documents = BUILT_IN, built_in_documents()
    elif is_imdb(config.data):
        name = "imdb"
        documents, of_set = read_imdb(config.data)
        test = of_set if test is None else test
    else:
        name = config.data.resolve().name.split(".")[0]
        documents = read_documents(config.data, config, notes)
    for path in config.more_data:
        documents += read_documents(path, config, notes)
    rng = np.random.default_rng(config.drawn_with(seed))
    drawn = [part for part, given in (("validation", validation), ("test", test)) if given is None]
    if drawn and len(documents) >= _FEW:
        documents = _distinct(documents, notes)
    shares = {"validation": config.validation_fraction, "test": config.test_fraction}
    parts = _deal(documents, {part: shares[part] for part in drawn}, rng)
    validation = parts["validation"] if validation is None else validation
    test = parts["test"] if test is None else test
    if not drawn or (test and "test" not in drawn):
        _note_copies(parts["train"], {"validation": validation, "test": test}, notes)
    found = {"train": parts["train"], "validation": validation, "test": test}
    for part, rows in found.items():
        if not rows:
            told = "".join(f" ({note})" for note in notes)
            raise DataError(
                f"{config.data or name}: expected at least one document for {part}, got none"
                f"{told}; give more texts, or files with --validation and --test"
            )
    return LanguageData(name, tuple(parts["train"]), tuple(validation), tuple(test), tuple(notes))


def _distinct(documents: Sequence[str], notes: list[str]) -> list[str]:
    """Documents without copies, which would stand in two parts."""
    kept = list(dict.fromkeys(documents))
    copies = len(documents) - len(kept)
    if copies:
        notes.append(f"{counted(copies, 'document')} left out that another one repeats")
    return kept


def _note_copies(
    train: Sequence[str], held_out: dict[str, Sequence[str]], notes: list[str]
) -> None:
    """Say which documents of parts that were given are also trained on."""
    trained = set(train)
    for part, documents in held_out.items():
        copies = sum(document in trained for document in documents)
        if copies:
            notes.append(f"{counted(copies, 'document')} of {part} also stand in train")


def _deal(
    documents: list[str], shares: dict[str, float], rng: np.random.Generator
) -> dict[str, list[str]]:
    """The documents of train and of the parts to draw, of these shares."""
    parts: dict[str, list[str]] = {"train": [], **{part: [] for part in shares}}
    if len(documents) < _FEW:
        for document in documents:
            for part, text in _cut(document, shares).items():
                if text.strip():
                    parts[part].append(text)
        return parts
    order = rng.permutation(len(documents))
    for part, share in shares.items():
        count = max(1, round(share * len(documents)))
        parts[part] = [documents[number] for number in order[:count]]
        order = order[count:]
    parts["train"] = [documents[number] for number in np.sort(order)]
    return parts


def _cut(document: str, shares: dict[str, float]) -> dict[str, str]:
    """The beginning of a document for train, then the other parts, cut at blanks."""
    begin = 0
    pieces = {}
    ends = {"train": 1 - sum(shares.values()), **shares}
    reached = 0.0
    for number, (part, share) in enumerate(ends.items(), start=1):
        reached += share
        end = len(document)
        if number < len(ends):
            end = _next_blank(document, max(begin, round(reached * len(document))))
        pieces[part], begin = document[begin:end], end
    return pieces


def _next_blank(text: str, place: int) -> int:
    """The first place from here on behind a blank; the end where there is none."""
    for end in range(place, len(text)):
        if end and text[end - 1].isspace():
            return end
    return len(text)


def source_of(config: LanguageDataConfig) -> Path | str:
    """What the data are called in messages and names of runs."""
    return config.data or BUILT_IN
