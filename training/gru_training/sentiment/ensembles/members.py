"""Runs that can be averaged: of the same classes and words, with the same rows held out."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import keras

from gru_training.errors import RunDirectoryError
from gru_training.runs.lineage import Lineage
from gru_training.sentiment.continuing.rows import load_data
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.data_config import SentimentDataConfig
from gru_training.sentiment.evaluation.measured import measured
from gru_training.sentiment.run import SentimentRun

DISTILLED = (
    "It has the settings of the first run and learned, beside the labels, what the networks of the "
    "runs answer on average to the training rows and to variants of them."
)
_READ_ONLY = ("cleaning", "spacing", "pieces", "max_vocabulary", "min_count", "max_tokens")
"""Settings that do not change the rows."""


class Members:
    """Runs to average.

    Args:
        runs: At least two; the first one's data, settings and words are those of the average.

    Raises:
        TrainingError: They cannot be averaged, or their data not be read again; names the run.
    """

    def __init__(self, runs: Sequence[SentimentRun]):
        self.runs, self.first = tuple(runs), runs[0]
        for run in runs:
            _require_single(run)
        for run in runs[1:]:
            self._require_alike(run)
        self.data = self._data()
        for run in runs[1:]:
            self._require_words(run)

    @cached_property
    def models(self) -> list[keras.Model]:
        """Their models."""
        return [run.load_model() for run in self.runs]

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Of their logits in the average.

        Each run's are divided by its temperature, so that none counts more for being too sure.
        """
        number = self.first.kind == "number"
        temperatures = [1.0 if number else run.temperature.value for run in self.runs]
        return tuple(1 / (len(self.runs) * each) for each in temperatures)

    def lineage(self, average: dict[str, Any] | None = None) -> Lineage:
        """Of the average, or of what is distilled from one with these metrics."""
        return Lineage(
            tuple(run.path.name for run in self.runs),
            self.weights,
            tuple(measured(run.metrics) for run in self.runs),
            self._how() if average is None else DISTILLED,
            None if average is None else measured(average),
        )

    def _how(self) -> str:
        weights = ", ".join(f"{weight:.3f}" for weight in self.weights)
        if self.first.kind == "number":
            return (
                "Its numbers are the mean of those of the runs; the intervals were fitted anew on "
                "the validation rows."
            )
        return (
            "Its logits are the sum of the runs' logits, each divided by its run's temperature and "
            f"the number of runs: weights {weights}. Temperature and thresholds were fitted anew "
            "on the validation rows. Gates are those of the first run."
        )

    def _require_alike(self, run: SentimentRun) -> None:
        """Raise RunDirectoryError unless a run answers and reads as the first one does."""
        first = self.first
        for what, got, expected in (
            ("answers to", run.kind, first.kind),
            ("classes", ", ".join(run.classes), ", ".join(first.classes)),
            ("--max-tokens", run.config.data.max_tokens, first.config.data.max_tokens),
            ("reading of texts", (run.reading, run.cleaned), (first.reading, first.cleaned)),
        ):
            if got != expected:
                raise RunDirectoryError(
                    f"{run.path}: expected the {what} {expected} of {first.path}, got {got}"
                )
        if run.kind == "number" and (run.scale.mean, run.scale.deviation) != (
            first.scale.mean,
            first.scale.deviation,
        ):
            raise RunDirectoryError(
                f"{run.path}: expected training rows with the mean {first.scale.mean:g} and the "
                f"deviation {first.scale.deviation:g} of {first.path}, got {run.scale.mean:g} and "
                f"{run.scale.deviation:g}"
            )

    def _require_words(self, run: SentimentRun) -> None:
        """Raise RunDirectoryError unless a run knows the words of the first one."""
        if run.vocabulary.tokens != self.first.vocabulary.tokens:
            raise RunDirectoryError(
                f"{run.path}: expected the words of {self.first.path}, got others; the runs of an "
                "average learned them from the same training rows with the same settings"
            )

    def _data(self) -> SentimentData:
        """The rows, which all runs held out alike."""
        data = _rows_of(self.first)
        _require_test_rows(self.first, self.first, data)
        for run in self.runs[1:]:
            _require_test_rows(run, self.first, data)
            # Where the test rows are given, the seed still draws the validation rows.
            if _splitting(run) != _splitting(self.first):
                validation = _rows_of(run).validation
                if not validation.same_rows(data.validation):
                    raise RunDirectoryError(
                        f"{run.path}: expected the validation rows of {self.first.path}, got others"
                    )
        return data


def _require_single(run: SentimentRun) -> None:
    """Raise RunDirectoryError for a run that cannot be a member by itself."""
    if "ensemble" in run.metrics:
        raise RunDirectoryError(
            f"{run.path}: expected a run that was trained, got an average; name the runs in it"
        )
    if run.given is not None:
        raise RunDirectoryError(
            f"{run.path}: expected a run whose data can be read again, got one that was trained in "
            "Python on data in memory; write them to a file and train with --data"
        )


def _rows_of(run: SentimentRun) -> SentimentData:
    return load_data(run.config)


def _splitting(run: SentimentRun) -> SentimentDataConfig:
    """The settings that the rows of the parts follow from."""
    plain, config = SentimentDataConfig(), run.config.data
    return replace(
        config,
        split_seed=config.drawn_with(run.config.training.seed),
        **{name: getattr(plain, name) for name in _READ_ONLY},
    )


def _require_test_rows(run: SentimentRun, first: SentimentRun, data: SentimentData) -> None:
    """Raise RunDirectoryError unless a run was tested on the test rows of these data."""
    held_out = [row.text for row in run.test_predictions()]
    expected, got = data.test.texts, tuple(held_out)
    if got == expected:
        return
    if run is first:
        raise RunDirectoryError(
            f"{run.path}: its {len(got):,} test rows are not those of its data, "
            f"{len(expected):,}; expected data and split as they were when it was trained"
        )
    raise RunDirectoryError(
        f"{run.path}: expected the {len(expected):,} test rows of {first.path}, got "
        f"{'others' if len(got) == len(expected) else f'{len(got):,} others'}: it may have been "
        "trained on those. Train runs with other seeds by --seed N --split-seed "
        f"{first.config.data.drawn_with(first.config.training.seed)}, or let "
        f"gru-train ensemble {first.path} --seeds N do so"
    )
