"""A text classifier to train on tables and to ask about texts."""

import os
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin

from training.data.frames import LABEL_KINDS, as_frame, frame_like, label_name, texts_of
from training.data.text_table import TextTable
from training.errors import DataError
from training.estimators.run_estimator import (
    RunEstimator,
    begun,
    load_tensorflow,
    progress_console,
)
from training.estimators.settings import Settings, in_python, takes
from training.estimators.text_source import Columns, labelled, text_source
from training.scoring.class_columns import class_columns
from training.scoring.engine import score_table
from training.sentiment.config import SentimentConfig
from training.sentiment.presets import PRESETS
from training.task import find_task

if TYPE_CHECKING:
    import keras

SETTINGS = Settings(
    SentimentConfig,
    PRESETS,
    {
        "data": "give the data to fit",
        "text_column": "give it to fit as text=",
        "label_column": "give it to fit as label=",
        "debug": "errors of Python show where they arose",
    },
)


@takes(SETTINGS)
class TextClassifier(ClassifierMixin, RunEstimator):
    """A GRU text classifier, as `gru-train sentiment` trains it.

    It writes the same run directory, and with the same rows and settings gets the same weights.

    Args:
        **settings: Any option of `gru-train sentiment` by its name without dashes
            (`learning_rate=1e-3`, `epochs=5`, `units=128`, `ngrams=True`,
            `runs_dir="runs"`, `name="tickets"`), and `preset` to begin with others than the
            defaults.

    Attributes:
        classes_: The labels, as they were in the table, in the order of the scores.
        run_: The run directory (`training.sentiment.run.SentimentRun`).

    Example:
        >>> classifier = TextClassifier(epochs=5).fit(tickets, text="body", label="category")
        >>> classifier.predict(["My card was charged twice"])
    """

    _task = "sentiment"
    _settings = SETTINGS
    classes_: np.ndarray
    _scorer: Any = None

    def __init__(self, **settings: Any):
        self._set(settings)

    def fit(
        self,
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | None = None,
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
            label: The column of labels; found by itself when called label, category, ...
            validation: Rows for choosing the best epoch: a table, a pair of texts and labels, or
                the share to draw from `data`.
            test: Rows for the final test, likewise.
            progress: Show how it goes; by default in a terminal or a notebook only.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """
        with in_python():
            source = text_source(data, y, Columns(text, label), validation, test)
            config = self._settings.config(vars(self), data=source.settings)
            return self._train(config, source.table, progress)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        data: Any = None,
        y: Any = None,
        *,
        text: str | None = None,
        label: str | None = None,
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
            table = text_source(data, y, columns, validation, test).table
        elif data is not None:
            raise DataError(f"{path} reads its data from {config.data.data}; leave `data` out")
        with in_python():
            return cls(**cls._settings.values(config))._train(config, table, progress, True)

    def predict(self, data: Any, *, text: str | None = None) -> Any:
        """Labels texts, in batches of texts of like length.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: The column; by default that of the training, else found by its name.

        Returns:
            A table of the library that `data` is of (of pandas for lists and arrays), with the
            columns `label`, `probability` and one for each class with its probability (a
            class called `label` has the column `class_label`). Rows and index are those of
            `data`.
        """
        scores = self.predict_proba(data, text=text)
        columns = {
            "label": self.classes_[scores.argmax(axis=1)].tolist(),
            "probability": scores.max(axis=1),
        }
        columns |= dict(zip(class_columns(self._run().classes), scores.T, strict=True))
        return frame_like(data, columns)

    def predict_proba(self, data: Any, *, text: str | None = None) -> np.ndarray:
        """Probabilities (N, C) float32 of texts, in the order of `classes_`.

        Args:
            data: As for `predict`.
            text: Likewise.
        """
        with in_python():
            texts = texts_of(data, self._columns(data, text).text)
        return self._scores(texts)

    def score(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> float:
        """Share of the rows that are labelled rightly, as scikit-learn's tools ask for it.

        Args:
            data: A table, or texts.
            y: The labels, where they are not a column of `data`.
            text: The column of texts; by default that of the training.
            label: The column of labels; likewise.
        """
        with in_python():
            texts, labels = labelled(data, y, self._columns(data, text, label))
        names = np.array(self._run().classes)[self._scores(texts).argmax(axis=1)]
        return float(np.mean(names == np.array([label_name(each) for each in labels])))

    def evaluate(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> dict[str, Any]:
        """Measures on labelled rows.

        Args:
            data: As for `score`; so are the further arguments.
            y: Likewise.
            text: Likewise.
            label: Likewise.

        Returns:
            `rows`, `accuracy`, `macro_f1`, `log_loss` (of the calibrated probabilities,
            natural logarithm), and `per_class`: precision, recall, F1 and rows by class.

        Raises:
            DataError: A label is none of the classes.
        """
        from training.classification.measures import classification_measures

        classes = self._run().classes
        with in_python():
            texts, labels = labelled(data, y, self._columns(data, text, label))
        names = [label_name(each) for each in labels]
        unknown = sorted(set(names) - set(classes))
        if unknown or not names:
            raise DataError(
                f"expected rows with the labels {', '.join(map(repr, classes))}; got "
                f"{', '.join(map(repr, unknown)) or 'no rows'}"
            )
        numbers = np.array([classes.index(name) for name in names])
        return classification_measures(numbers, self._scores(texts), classes)

    def text_model(self) -> "keras.Model":
        """A Keras model from texts (B,) to calibrated probabilities (B, C).

        Other than `model.keras` of the run, which reads word ids, it takes strings. It can be
        saved as a `.keras` file of its own and is read back after `import keras_gru`.
        """
        from training.sentiment.served.text_model import build_text_model

        return build_text_model(self._run())

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
        kind = (run.given or {}).get("labels", "text")
        labels = [LABEL_KINDS.get(kind, str)(name) for name in run.classes]
        self.classes_ = np.array(labels, object if kind == "text" else None)

    def _columns(self, data: Any, text: str | None, label: str | None = None) -> Columns:
        """The columns meant: those asked for, else those of the training where they are there."""
        run = self._run()
        frame = as_frame(data)
        there = [] if frame is None else frame.columns
        settings = run.config.data
        known = run.given or {"text": settings.text_column, "label": settings.label_column}
        return Columns(
            text or (known["text"] if known["text"] in there else None),
            label or (known["label"] if known["label"] in there else None),
        )

    def _scores(self, texts: list[str]) -> np.ndarray:
        """Probabilities (N, C) float32."""
        run = self._run()
        load_tensorflow()
        if self._scorer is None:
            self._scorer = find_task(self._task).scorer(run)
        answers = score_table(self._scorer, pa.table({"text": pa.array(texts, pa.string())}))
        scores = [answers.column(name).to_numpy() for name in class_columns(run.classes)]
        return np.column_stack(scores)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_scorer": None}  # TensorFlow's graphs are not pickled
