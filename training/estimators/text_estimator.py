"""What estimators that learn from texts have in common: data in, a run, answers to texts."""

import os
from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from training.data.frames import as_frame, frame_like, texts_of
from training.data.text_table import TextTable
from training.errors import DataError
from training.estimators.run_estimator import (
    RunEstimator,
    begun,
    load_tensorflow,
    progress_console,
    tuning,
)
from training.estimators.settings import Settings, in_python
from training.estimators.text_source import Columns, text_source
from training.scoring.engine import score_table
from training.sentiment.config import SentimentConfig
from training.sentiment.presets import PRESETS
from training.task import find_task

SETTINGS = Settings(
    SentimentConfig,
    PRESETS,
    {
        "data": "give the data to fit",
        "more_data": "give all rows to fit",
        "validation": "give the rows to fit as validation=",
        "test": "give the rows to fit as test=",
        "text_column": "give it to fit as text=",
        "label_column": "give it to fit as label=",
        "label_columns": "give them to fit as label=[...]",
        "part_column": "give the parts to fit as validation= and test=",
        "debug": "errors of Python show where they arose",
    },
)


class TextEstimator(RunEstimator):
    """Trains on texts, and answers texts.

    Attributes:
        run_: The run directory (`training.sentiment.run.SentimentRun`).
    """

    _task = "sentiment"
    _settings = SETTINGS
    _scorer: Any = None

    def __init__(self, **settings: Any):
        self._set(settings)

    def fit(
        self,
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
        validation: Any = None,
        test: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Trains, and writes a run directory.

        Ctrl-C ends the training and keeps the best epoch so far; a training that was killed goes
        on with `resume`.

        Args:
            data: A table (pandas, Polars, PyArrow, ...) with a column of texts and one of labels;
                texts alone (a list, array or column) with `y`; or the path of a file or folder
                as for `--data`. By default what the preset reads, else made-up reviews.
            y: The labels, where they are not a column of `data`.
            text: The column of texts; found by itself when called text, sentence, review, ...
            label: The column of labels; found by itself when called label, category, ...; several
                columns, or one of lists, where a text may have any number of labels.
            validation: Rows for choosing the best epoch: a table, a pair of texts and labels, or
                the share to draw from `data`.
            test: Rows for the final test, likewise.
            progress: Show how it goes; by default in a terminal or a notebook only.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """
        with in_python():
            source = text_source(data, y, Columns(text, label), validation, test, self)
            config = self._settings.config(vars(self), data=source.settings)
            return self._train(config, source.table, progress)

    def tune(
        self,
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
        validation: Any = None,
        test: Any = None,
        minutes: float | None = None,
        trials: int | None = None,
        vary: Sequence[str] = (),
        study: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Search for the settings that do best on the validation rows, and train with them.

        Settings that are not the defaults stay as they are. Test rows are not looked at before the
        training at the end. Called again with the same data and settings, the search goes on.

        Args:
            data: As for `fit`; so are the next five.
            y: Likewise.
            text: Likewise.
            label: Likewise.
            validation: Likewise.
            test: Likewise.
            minutes: Time for the search; by default 30, or what `trials` take.
            trials: Most trials.
            vary: Ranges to search beside the default ones, as `"units=64:256"`.
            study: Folder of the study; by default in `runs_dir`.
            progress: As for `fit`.

        Raises:
            TrainingError: Settings, data or study cannot be used.
        """
        from training.sentiment.data import load_sentiment_data

        with in_python():
            search = tuning(self._task, minutes, trials, vary, study)
            source = text_source(data, y, Columns(text, label), validation, test, self)
            config = self._settings.config(vars(self), data=source.settings)
            rows = load_sentiment_data(config.data, config.training.seed, source.table)
            self._search(config, rows, search, progress)
        return self.fit(
            data,
            y,
            text=text,
            label=label,
            validation=validation,
            test=test,
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
        validation: Any = None,
        test: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Go on with a training that was killed, to the weights it would have had.

        Args:
            path: Where the run was to be, as `runs/NAME`.
            data: The same data as before, where they were given in memory.
            y: As for `fit`; so are the further arguments.
            text: By default the column of the training that was killed.
            label: Likewise.
            validation: The same rows as before, where rows were given.
            test: Likewise.
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
            table = text_source(data, y, columns, validation, test, config.data).table
        elif data is not None:
            raise DataError(f"{path} reads its data from {config.data.data}; leave `data` out")
        with in_python():
            return cls(**cls._settings.values(config))._train(config, table, progress, True)

    def predict(self, data: Any, *, text: str | None = None) -> Any:
        """Answer texts, in batches of texts of like length.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: The column; by default that of the training, else found by its name.

        Returns:
            A table of the library that `data` is of (of pandas for lists and arrays), with the
            columns of `gru-train predict`. Rows and index are those of `data`.
        """
        with in_python():
            texts = texts_of(data, self._columns(data, text).text)
        return frame_like(data, self._answered(self._answers(texts)))

    def _train(
        self,
        config: SentimentConfig,
        table: TextTable | None,
        progress: bool | None,
        resume: bool = False,
    ) -> Self:
        from training.sentiment.data import load_sentiment_data

        console = progress_console(progress)
        data = load_sentiment_data(config.data, config.training.seed, table)
        load_tensorflow()
        from training.sentiment.pipeline import train_sentiment

        for note in data.notes:
            console.print(f"note: {note}", style="yellow", markup=False, highlight=False)
        given = table.given if table else None
        return self._finish(train_sentiment(config, console, resume, data, given), console)

    def _fitted(self, run: Any) -> None:
        super()._fitted(run)
        self._scorer = None

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

    def _answers(self, texts: list[str]) -> pa.Table:
        """The columns of a scored file."""
        run = self._run()
        load_tensorflow()
        if self._scorer is None:
            self._scorer = find_task(self._task).scorer(run)
        return score_table(self._scorer, pa.table({"text": pa.array(texts, pa.string())}))

    def _answered(self, answers: pa.Table) -> dict[str, Any]:
        """The columns of what `predict` returns."""
        return {
            name: (
                answers.column(name).to_numpy()
                if pa.types.is_floating(answers.schema.field(name).type)
                else answers.column(name).to_pylist()
            )
            for name in answers.column_names
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_scorer": None}  # TensorFlow's graphs are not pickled


def _all_in(column: Any, columns: list[str]) -> bool:
    """Whether a column, or all of several, are there."""
    names = column if isinstance(column, list) else [column]
    return bool(names) and all(name in columns for name in names)
