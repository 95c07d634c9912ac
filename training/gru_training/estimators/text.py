"""Estimators for texts with classes, labels or numbers."""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score

from gru_training.data.frames import LABEL_KINDS, as_frame, frame_like, label_names, texts_of
from gru_training.data.label_names import classes_of
from gru_training.data.text_files import TextTable
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.estimators.run_estimator import RunEstimator, load_tensorflow
from gru_training.estimators.settings import Settings, in_python, takes
from gru_training.estimators.text_source import TextSource, labelled, row_weights, text_source
from gru_training.scoring.class_columns import class_columns
from gru_training.scoring.engine import score_table
from gru_training.sentiment.config import PRESETS, SentimentConfig
from gru_training.sentiment.task import TASK
from gru_training.tune.command import TuneConfig

if TYPE_CHECKING:
    import keras
    from sklearn.utils import Tags

    from gru_training.sentiment.run import SentimentRun

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
    """Common base of the estimators for texts.

    Attributes:
        run_: The run directory (`gru_training.sentiment.run.SentimentRun`).
    """

    _task = "sentiment"
    _settings = SETTINGS
    _shared = frozenset({"_loaded"})
    _estimates_numbers: ClassVar[bool] = False

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

        Ctrl-C ends the training and keeps the best epoch so far. A training that was killed
        continues with `resume` if its run was to be kept.

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
            test: Rows for the final test, given in the same ways.
            soft: A table of further texts, in a column called as that of `data`, with the
                probability of each class in a column called as the class, or with a dict of these
                in a column `probabilities`; of a file name it in the setting `soft_data`.
            progress: Whether to show progress; by default in a terminal or a notebook only.

        Raises:
            TrainingError: Settings, data or run directory cannot be used; no run is left behind.
        """
        with in_python():
            source = self._source(
                data, y, text=text, label=label, sample_weight=sample_weight,
                validation=validation, test=test,
            )  # fmt: skip
            config = self._settings.config(vars(self), data=source.settings)
            return self._train_on(config, source.table, progress, soft=soft)

    def tune(
        self,
        data: Any = None,
        y: Any = None,
        *,
        minutes: float | None = None,
        trials: int | None = None,
        vary: Sequence[str] = (),
        study: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        **rows: Any,
    ) -> Self:
        """Search for settings, and train with those that do best on the validation rows.

        The defaults are kept if chance may explain the gain of the best settings. Settings other
        than the defaults stay as they are. No test row is read before the final training. Called
        again with the same data and settings, a search whose study is kept continues.

        Args:
            data: Rows to learn from, as for `fit`.
            y: Labels, as for `fit`.
            minutes: Minutes for the search; by default 30, or what `trials` take.
            trials: Maximum number of trials.
            vary: Ranges to search beside the default ones, such as `"units=64:256"`.
            study: Folder of the study; by default in `runs_dir`, or none is kept.
            progress: Whether to show progress, as for `fit`.
            **rows: Further arguments of `fit`: `text`, `label`, `sample_weight`, `validation`,
                `test`, `soft`.

        Raises:
            TrainingError: Settings, data or study cannot be used.
        """
        from gru_training.sentiment.data import load_data
        from gru_training.sentiment.soft_targets import soft_table

        soft = rows.pop("soft", None)
        with in_python():
            search = TuneConfig(
                self._task, minutes=minutes, trials=trials, vary=tuple(vary),
                study=None if study is None else Path(study),
            )  # fmt: skip
            source = self._source(data, y, **rows)
            config = self._settings.config(vars(self), data=source.settings)
            found = load_data(config, source.table, soft_table(soft))
            self._search(config, found, search, progress)
        return self.fit(data, y, soft=soft, progress=progress, **rows)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        data: Any = None,
        y: Any = None,
        *,
        progress: bool | None = None,
        **rows: Any,
    ) -> Self:
        """Continue a training that was killed, with the same result as without the interruption.

        Args:
            path: Directory that the run was to have, such as `runs/NAME`.
            data: Data of the training, where they were given in memory.
            y: Labels, as for `fit`.
            progress: Whether to show progress, as for `fit`.
            **rows: Further arguments of `fit`, with the same rows and weights as before; by default
                the columns of the training that was killed.

        Raises:
            CheckpointError: There is no checkpoint, or the data are others.
        """
        soft = rows.pop("soft", None)
        config, given = cls._interrupted(path, data)
        table = None
        if given is not None:
            for name in ("text", "label"):
                rows[name] = rows.get(name) or given.get(name)
            table = text_source(data, y, config.data, **rows).table
        with in_python():
            return cls(**cls._settings.values(config))._train_on(
                config, table, progress, True, soft
            )

    def _source(self, data: Any, y: Any, **rows: Any) -> TextSource:
        """Read the rows to learn from, as given by the arguments of `fit`."""
        return text_source(data, y, self, **rows)

    def _columns(self, data: Any, text: str | None, label: Any = None) -> tuple[Any, Any]:
        """Choose the columns: those requested, or those of the training if they exist."""
        run = self._run()
        frame = as_frame(data)
        there = [] if frame is None else frame.columns
        known = run.given or {name: run.column_of(name) for name in ("text", "label")}
        of = known["label"] if isinstance(known["label"], list) else [known["label"]]
        return (
            text or (known["text"] if known["text"] in there else None),
            label or (known["label"] if of and set(of) <= set(there) else None),
        )

    def _train_on(
        self,
        config: SentimentConfig,
        table: TextTable | None,
        progress: bool | None,
        resume: bool = False,
        soft: Any = None,
    ) -> Self:
        """Train on the rows of tables in memory, or on those that the settings name."""
        from gru_training.sentiment.data import load_data
        from gru_training.sentiment.soft_targets import soft_table

        if table is None and soft is None:
            return self._train(config, progress, resume)
        data = load_data(config, table, soft_table(soft))
        return self._train(config, progress, resume, data, None if table is None else table.given)

    def _training(self) -> "Callable[..., SentimentRun | None]":
        from gru_training.sentiment.pipeline import train_sentiment

        return train_sentiment

    def score(
        self,
        data: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
    ) -> float:
        """Compute the share of rows with the right label or labels, or the R² of numbers.

        scikit-learn's tools call it. Labels that are none of the classes are wrong, with a warning.

        Args:
            data: A table, or texts.
            y: The labels or numbers, where they are not a column of `data`.
            sample_weight: One weight per row; by default 1 each.
            text: The column of texts; by default that of the training.
            label: The column of labels or numbers; likewise.
        """
        with in_python():
            texts, labels = labelled(data, y, *self._columns(data, text, label))
            weights = None if sample_weight is None else row_weights(sample_weight, len(texts))
        return self._score(texts, labels, weights)

    def _score(self, texts: list[str], labels: list[Any], weights: np.ndarray | None) -> float:
        """Compare the answers to texts with what is right."""
        raise NotImplementedError

    def predict_frame(self, data: Any, *, text: str | None = None) -> Any:
        """Answer texts with a table of labels or numbers, and their certainty.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: Name of that column; by default that of the training, else found by its name.

        Returns:
            A table of the library that `data` is of (of pandas for lists and arrays), with the
            columns of `gru-train predict`. Rows and index are those of `data`.
        """
        return frame_like(data, self._answered(self._answers(self._texts(data, text))))

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # rows are texts, (N,) or a table
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True  # read as empty texts
        tags.target_tags.required = False  # may be a column of the table
        return tags

    def _fitted(self, run: Any) -> None:
        kinds = (("classes", "TextClassifier"), ("numbers", "TextRegressor"))
        if (run.kind == "number") != self._estimates_numbers:
            (other, owner), (own, _) = kinds if self._estimates_numbers else kinds[::-1]
            raise RunDirectoryError(
                f"{run.path}: expected a run of {own}, got one of {other}; use {owner} or load_run"
            )
        super()._fitted(run)

    def _texts(self, data: Any, text: str | None) -> list[str]:
        """Return the texts of a table, or texts themselves."""
        with in_python():
            return texts_of(data, self._columns(data, text)[0])

    def _answers(self, texts: list[str]) -> pa.Table:
        """Name the columns of a scored file."""
        run = self._run()
        load_tensorflow()
        if "scorer" not in self._loaded:
            self._loaded["scorer"] = TASK.scorer(run)
        return score_table(self._loaded["scorer"], pa.table({"text": pa.array(texts, pa.string())}))

    def _answered(self, answers: pa.Table) -> dict[str, Any]:
        """Return the columns of the result of `predict_frame`."""
        return {
            name: (
                answers.column(name).to_numpy()
                if pa.types.is_floating(answers.schema.field(name).type)
                else answers.column(name).to_pylist()
            )
            for name in answers.column_names
        }


@takes(SETTINGS)
class TextClassifier(ClassifierMixin, TextEstimator):
    """A GRU text classifier, trained as by `gru-train sentiment`.

    It writes the same run directory, and gets the same weights from the same rows and settings.

    Args:
        **settings: Settings of `gru-train sentiment` by name
            (`learning_rate=1e-3`, `epochs=5`, `units=128`, `ngrams=True`,
            `runs_dir="runs"`, `name="tickets"`), and `preset` to begin with others than the
            defaults. `class_weight` may also be a dict of weights by label.

    Attributes:
        classes_: The labels (C,), of the type that they had in the table, in ascending order.
        run_: The run directory (`gru_training.sentiment.run.SentimentRun`).

    Example:
        >>> classifier = TextClassifier(epochs=5).fit(tickets, text="body", label="category")
        >>> classifier.predict(["My card was charged twice"])
    """

    classes_: np.ndarray
    _places: np.ndarray
    """Position of each of `classes_` in the run's own order, (C,)."""
    _by_value: dict[Any, str]
    """Name of each of `classes_` in the run."""

    def __init__(self, **settings: Any):
        if settings.get("target_type") == "number":
            raise ConfigError("target_type: numbers are estimated by TextRegressor")
        super().__init__(**settings)

    def predict(self, data: Any, *, text: str | None = None) -> np.ndarray:
        """Label texts, in batches of texts of similar length.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: Name of that column; by default that of the training, else found by its name.

        Returns:
            Labels (N,) of the type of `classes_`; where a text may have several labels, (N, C) of
            0 and 1 in the order of `classes_`. `predict_frame` also has the probabilities.
        """
        named = self._named(self._texts(data, text))
        if self._run().kind == "labels":
            members = [[name in names for name in self.classes_] for names in named]
            return np.array(members, np.int64).reshape(len(named), len(self.classes_))
        numbers = {name: number for number, name in enumerate(self._names_in_order())}
        labels: np.ndarray = self.classes_[[numbers[name] for (name,) in named]]
        return labels

    def predict_proba(self, data: Any, *, text: str | None = None) -> np.ndarray:
        """Estimate the probabilities (N, C) float32 of texts, in the order of `classes_`.

        Args:
            data: Texts, as for `predict`.
            text: Name of the column of texts, as for `predict`.
        """
        scores = self._scores(self._texts(data, text))
        return np.ascontiguousarray(scores[:, self._places])

    score = TextEstimator.score  # not that of ClassifierMixin

    def _score(self, texts: list[str], labels: list[Any], weights: np.ndarray | None) -> float:
        truth, classes = self._names(labels), self._run().classes
        unknown = sorted({name for row in truth for name in row} - set(classes))
        if unknown:
            warnings.warn(
                f"rows with a label that is none of the classes {', '.join(map(repr, classes))} "
                f"count as wrong: {', '.join(map(repr, unknown[:3]))}"
                + (" ..." if unknown[3:] else ""),
                stacklevel=3,
            )
        right = [set(a) == set(b) for a, b in zip(self._named(texts), truth, strict=True)]
        return float(np.average(right, weights=weights))

    def evaluate(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> dict[str, Any]:
        """Evaluate on labelled rows.

        Args:
            data: Table or texts, as for `score`.
            y: Labels, as for `score`.
            text: Column of texts, as for `score`.
            label: Column of labels, as for `score`.

        Returns:
            `rows`, `accuracy`, `macro_f1`, `log_loss` (of the calibrated probabilities,
            natural logarithm), and `per_class`: precision, recall, F1, average precision and rows
            by class, None for what no row tells. Of several labels `micro_f1`, `macro_f1` and
            `exact_match` in place of the accuracy.

        Raises:
            DataError: A label is none of the classes.
        """
        from gru_training.sentiment.measures import classification_measures, label_measures

        classes = self._run().classes
        with in_python():
            texts, labels = labelled(data, y, *self._columns(data, text, label))
        names = self._names(labels)
        unknown = sorted({name for row in names for name in row} - set(classes))
        if unknown or not names:
            raise DataError(
                f"expected rows with the labels {', '.join(map(repr, classes))}; got "
                f"{', '.join(map(repr, unknown)) or 'no rows'}"
            )
        members = np.array([[each in row for each in classes] for row in names])
        answered = np.array([[each in row for each in classes] for row in self._named(texts)])
        scores = self._scores(texts)
        if self._run().kind == "labels":
            return label_measures(members, answered, scores, classes)
        return classification_measures(
            members.argmax(axis=1), scores, classes, answered.argmax(axis=1)
        )

    def text_model(self) -> "keras.Model":
        """Return a Keras model from texts (B,) to calibrated probabilities (B, C).

        Unlike `model.keras` of the run, which reads word ids, it takes strings. It can be saved as
        a `.keras` file and loaded after `import keras_gru`.
        """
        from gru_training.sentiment.served.keras_model import build_text_model

        return build_text_model(self._run())

    def _fitted(self, run: Any) -> None:
        super()._fitted(run)
        given = run.given or {}
        kind = given.get("labels", "text")
        labels = [LABEL_KINDS.get(kind, str)(name) for name in run.classes]
        dtype = given.get("dtype", "O")
        if kind == "text":
            dtype = "U" if dtype == "U" else "O"
        found = np.array(labels, None if dtype == "O" and kind != "text" else dtype)
        # scikit-learn's measures assume this order; files of class names may have another one.
        self._places = np.argsort(found, kind="stable")
        self.classes_ = found[self._places]
        self._by_value = dict(zip(self.classes_.tolist(), self._names_in_order(), strict=True))

    def _names_in_order(self) -> list[str]:
        """Return the run's names of the classes in the order of `classes_`."""
        return [self._run().classes[place] for place in self._places]

    def _answered(self, answers: Any) -> dict[str, Any]:
        columns = super()._answered(answers)
        if self._run().kind == "class":  # as they were in the table
            original = {name: value for value, name in self._by_value.items()}
            columns["label"] = [original[name] for name in columns["label"]]
        return columns

    def _scores(self, texts: list[str]) -> np.ndarray:
        """Compute the probabilities (N, C) float32."""
        answers = self._answers(texts)
        names = class_columns(self._run().classes)
        return np.column_stack([answers.column(name).to_numpy() for name in names])

    def _named(self, texts: list[str]) -> list[tuple[str, ...]]:
        """Convert the answers to classes or labels."""
        answers = self._answers(texts)
        if self._run().kind == "labels":
            return [tuple(names) for names in answers.column("labels").to_pylist()]
        return [(name,) for name in answers.column("label").to_pylist()]

    def _names(self, labels: list[Any]) -> list[tuple[str, ...]]:
        """Return the classes or labels of each row, of any spelling if the training merged them.

        Raises:
            DataError: A class is missing.
        """
        run = self._run()
        rows = [self._names_of(label, run.kind) for label in labels]
        if not run.config.data.merge_labels:
            return rows
        class_of = classes_of({name for names in rows for name in names}, run.classes)
        return [tuple(dict.fromkeys(class_of[name] for name in names)) for names in rows]

    def _names_of(self, label: Any, kind: str) -> tuple[str, ...]:
        """Return the names of a row; 1, 1.0 and True are one class, as in NumPy."""
        if kind == "labels":
            return label_names(label, "labels")
        if isinstance(label, bool | int | float) and label in self._by_value:
            return (self._by_value[label],)
        if names := label_names(label):
            return names
        raise DataError("y: expected a label for each text, got a missing one")


@takes(SETTINGS, target_type="number")
class TextRegressor(RegressorMixin, TextEstimator):
    """A GRU that estimates numbers, trained as by `gru-train sentiment --target-type number`.

    Args:
        **settings: Settings by name, as of `TextClassifier`; `target_type` is `number`.

    Attributes:
        run_: The run directory (`gru_training.sentiment.run.SentimentRun`).

    Example:
        >>> regressor = TextRegressor(epochs=5).fit(reviews, text="body", label="stars")
        >>> regressor.predict_frame(["Two hours I will not get back"])  # value and its intervals
    """

    _estimates_numbers = True

    def __init__(self, **settings: Any):
        if settings.get("target_type") not in (None, "number"):
            raise ConfigError(f"target_type: expected number, got {settings['target_type']!r}")
        super().__init__(**{**settings, "target_type": "number"})

    def predict(self, data: Any, *, text: str | None = None) -> np.ndarray:
        """Estimate the numbers (N,) of texts.

        Args:
            data: A table with a column of texts, or texts alone (a list, array or column).
            text: Name of that column; by default that of the training, else found by its name.

        Returns:
            Numbers (N,); `predict_frame` also has their intervals.
        """
        values: np.ndarray = self._answers(self._texts(data, text)).column("value").to_numpy()
        return values

    score = TextEstimator.score  # not that of RegressorMixin

    def _score(self, texts: list[str], labels: list[Any], weights: np.ndarray | None) -> float:
        numbers = _numbers(labels)
        values = self._answers(texts).column("value").to_numpy()
        return float(r2_score(numbers, values, sample_weight=weights))

    def evaluate(
        self, data: Any, y: Any = None, *, text: str | None = None, label: str | None = None
    ) -> dict[str, float]:
        """Evaluate on rows with known numbers; arguments as in `score`.

        Returns:
            `rows`, `mae`, `rmse`, `r2`, and the shares inside the intervals, `inside_80` and
            `inside_95`.
        """
        from gru_training.sentiment.measures import number_measures

        with in_python():
            texts, numbers = labelled(data, y, *self._columns(data, text, label))
            values = _numbers(numbers)
        answers = self._answers(texts)
        low95, low80, high80, high95 = (answers.column(k).to_numpy() for k in range(1, 5))
        return {
            "rows": len(values),
            **number_measures(values, answers.column("value").to_numpy()),
            "inside_80": float(np.mean((values >= low80) & (values <= high80))),
            "inside_95": float(np.mean((values >= low95) & (values <= high95))),
        }


def _numbers(labels: list[Any]) -> np.ndarray:
    """Return the numbers (N,) float64 of texts.

    Raises:
        DataError: A number is missing, or is none.
    """
    for row, label in enumerate(labels):
        if not label_names(label, "number"):
            raise DataError(f"row {row}: expected a number for each text, got a missing one")
    return np.array(labels, np.float64)
