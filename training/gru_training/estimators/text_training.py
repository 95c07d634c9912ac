"""How estimators learn from texts: data in, a run out."""

import os
from collections.abc import Sequence
from typing import Any, Self, cast

from gru_training.data.frames import as_frame
from gru_training.data.text_table import TextTable
from gru_training.errors import DataError
from gru_training.estimators.run_estimator import (
    RunEstimator,
    begun,
    load_tensorflow,
    progress_console,
    tuning,
)
from gru_training.estimators.settings import in_python
from gru_training.estimators.text_settings import SETTINGS
from gru_training.estimators.text_source import Columns, LabelSettings, TextSource, text_source
from gru_training.sentiment.config import SentimentConfig


class TextTraining(RunEstimator):
    """Trains on texts: in one go, after a break, or in a search."""

    _task = "sentiment"
    _settings = SETTINGS
    _shared = frozenset({"_loaded"})

    def __init__(self, **settings: Any):
        self._set(settings)

    def fit(
        self,
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
        sample_weight: Any = None,
        validation: Any = None,
        test: Any = None,
        soft: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Train, and write a run directory: a temporary one unless `runs_dir` or `name` is set.

        Ctrl-C ends the training and keeps the best epoch so far; a training that was killed goes
        on with `resume` if its run was to be kept.

        Args:
            data: A table (pandas, Polars, PyArrow, ...) with a column of texts and one of labels;
                texts alone (a list, array or column) with `y`; or the path of a file or folder
                as for `--data`. By default what the preset reads, else made-up reviews.
            y: The labels, where they are not a column of `data`.
            text: The column of texts; found by itself when called text, sentence, review, ...
            label: The column of labels; found by itself when called label, category, ...; several
                columns, or one of lists, where a text may have any number of labels.
            sample_weight: One weight per row in the loss, relative to the others. Rows of weight 0
                are left out. Rows held out for validation and test all count the same.
            validation: Rows for choosing the best epoch: a table, a pair of texts and labels, or
                the share to draw from `data`.
            test: Rows for the final test, likewise.
            soft: A table of further texts, in a column called as that of `data`, with the
                probability of each class in a column called as the class, or with a dict of these
                in a column `probabilities`; of a file name it in the setting `soft_data`.
            progress: Show how it goes; by default in a terminal or a notebook only.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """
        with in_python():
            source = self._source(data, y, Columns(text, label), validation, test, sample_weight)
            config = self._settings.config(vars(self), data=source.settings)
            return self._train(config, source.table, progress, soft=soft)

    def tune(
        self,
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
        sample_weight: Any = None,
        validation: Any = None,
        test: Any = None,
        soft: Any = None,
        minutes: float | None = None,
        trials: int | None = None,
        vary: Sequence[str] = (),
        study: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Search for settings, and train with those that do best on the validation rows.

        Where chance may explain what they gain over the defaults, these are kept. Settings
        that are not the defaults stay as they are. Test rows are not looked at before the training
        at the end. Called again with the same data and settings, a search
        whose study is kept goes on.

        Args:
            data: As for `fit`; so are the next seven.
            y: Likewise.
            text: Likewise.
            label: Likewise.
            sample_weight: Likewise.
            validation: Likewise.
            test: Likewise.
            soft: Likewise.
            minutes: Time for the search; by default 30, or what `trials` take.
            trials: Most trials.
            vary: Ranges to search beside the default ones, as `"units=64:256"`.
            study: Folder of the study; by default in `runs_dir`, or none is kept.
            progress: As for `fit`.

        Raises:
            TrainingError: Settings, data or study cannot be used.
        """
        from gru_training.sentiment.data import load_data
        from gru_training.sentiment.soft import soft_table

        with in_python():
            search = tuning(self._task, minutes, trials, vary, study)
            source = self._source(data, y, Columns(text, label), validation, test, sample_weight)
            config = self._settings.config(vars(self), data=source.settings)
            rows = load_data(config, source.table, soft_table(soft))
            self._search(config, rows, search, progress)
        return self.fit(
            data,
            y,
            text=text,
            label=label,
            sample_weight=sample_weight,
            validation=validation,
            test=test,
            soft=soft,
            progress=progress,
        )

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
        sample_weight: Any = None,
        validation: Any = None,
        test: Any = None,
        soft: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Go on with a training that was killed, to the weights it would have had.

        Args:
            path: Where the run was to be, as `runs/NAME`.
            data: The same data as before, where they were given in memory.
            y: As for `fit`; so are the further arguments.
            text: By default the column of the training that was killed.
            label: Likewise.
            sample_weight: The same weights as before, where they were given.
            validation: The same rows as before, where rows were given.
            test: Likewise.
            soft: Likewise.
            progress: As for `fit`.

        Raises:
            CheckpointError: There is no checkpoint, or the data are others.
        """
        config, given = begun(path, cls._task, SentimentConfig)
        table = None
        if given is not None:
            if data is None:
                raise DataError(f"{path} was begun with data given in memory; give them again")
            columns = Columns(text or given.get("text"), label or given.get("label"))
            table = text_source(
                data, y, columns, validation, test, config.data, sample_weight
            ).table
        elif data is not None:
            raise DataError(f"{path} reads its data from {config.data.data}; leave `data` out")
        with in_python():
            return cls(**cls._settings.values(config))._train(config, table, progress, True, soft)

    def _source(
        self,
        data: Any,
        y: Any,
        columns: Columns,
        validation: Any = None,
        test: Any = None,
        weights: Any = None,
    ) -> TextSource:
        """The rows to learn from, as of `text_source`."""
        return text_source(data, y, columns, validation, test, cast(LabelSettings, self), weights)

    def _columns(self, data: Any, text: str | None, label: Any = None) -> Columns:
        """The columns meant: those asked for, else those of the training where they are there."""
        run = self._run()
        frame = as_frame(data)
        there = [] if frame is None else frame.columns
        settings = run.config.data
        known = run.given or {"text": settings.text_column, "label": settings.label_column}
        return Columns(
            text or (known["text"] if known["text"] in there else None),
            label or (known["label"] if _all_in(known["label"], there) else None),
        )

    def _train(
        self,
        config: SentimentConfig,
        table: TextTable | None,
        progress: bool | None,
        resume: bool = False,
        soft: Any = None,
    ) -> Self:
        from gru_training.sentiment.data import load_data
        from gru_training.sentiment.soft import soft_table

        data, given = (
            load_data(config, table, soft_table(soft)),
            None if table is None else table.given,
        )
        console = progress_console(progress)
        load_tensorflow()
        from gru_training.sentiment.pipeline import train_sentiment

        for note in data.notes:
            console.print(f"note: {note}", style="yellow", markup=False, highlight=False)
        run = self._run_of(
            config, lambda place: train_sentiment(place, console, resume, data, given)
        )
        return self._finish(run, console)


def _all_in(column: Any, columns: list[str]) -> bool:
    """Whether a column, or all of several, are there."""
    names = column if isinstance(column, list) else [column]
    return bool(names) and all(name in columns for name in names)
