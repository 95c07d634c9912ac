"""A text classifier to train on tables and to ask about texts."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from gru_training.data.frames import LABEL_KINDS, label_name
from gru_training.data.label_cells import names_in
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.estimators.settings import in_python, takes
from gru_training.estimators.text_estimator import TextEstimator
from gru_training.estimators.text_settings import SETTINGS
from gru_training.estimators.text_source import labelled, row_weights
from gru_training.scoring.class_columns import class_columns

if TYPE_CHECKING:
    import keras


@takes(SETTINGS)
class TextClassifier(ClassifierMixin, TextEstimator):
    """A GRU text classifier, as `gru-train sentiment` trains it.

    It writes the same run directory, and with the same rows and settings gets the same weights.

    Args:
        **settings: Any option of `gru-train sentiment` by its name without dashes
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
    """(C,), where each of `classes_` stands in the run's own order."""

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
        """Probabilities (N, C) float32 of texts, in the order of `classes_`.

        Args:
            data: As for `predict`.
            text: Likewise.
        """
        scores = self._scores(self._texts(data, text))
        return np.ascontiguousarray(scores[:, self._places])

    def score(
        self,
        data: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        text: str | None = None,
        label: str | list[str] | None = None,
    ) -> float:
        """Share of the rows with the right label or labels, as scikit-learn's tools ask for it.

        Args:
            data: A table, or texts.
            y: The labels, where they are not a column of `data`.
            sample_weight: One weight per row in that share; by default 1 each.
            text: The column of texts; by default that of the training.
            label: The column of labels; likewise.
        """
        with in_python():
            texts, labels = labelled(data, y, self._columns(data, text, label))
            weights = None if sample_weight is None else row_weights(sample_weight, len(texts))
        pairs = zip(self._named(texts), labels, strict=True)
        right = [set(said) == set(self._names(label)) for said, label in pairs]
        return float(np.average(right, weights=weights))

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
            natural logarithm), and `per_class`: precision, recall, F1, average precision and rows
            by class. Of several labels `micro_f1`, `macro_f1` and `exact_match` in place of the
            accuracy.

        Raises:
            DataError: A label is none of the classes.
        """
        from gru_training.sentiment.measures import classification_measures, label_measures

        classes = self._run().classes
        with in_python():
            texts, labels = labelled(data, y, self._columns(data, text, label))
        names = [self._names(label) for label in labels]
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
        """A Keras model from texts (B,) to calibrated probabilities (B, C).

        Other than `model.keras` of the run, which reads word ids, it takes strings. It can be
        saved as a `.keras` file of its own and is read back after `import keras_gru`.
        """
        from gru_training.sentiment.served.text_model import build_text_model

        return build_text_model(self._run())

    def _fitted(self, run: Any) -> None:
        if run.kind == "number":
            raise RunDirectoryError(
                f"{run.path}: expected a run of classes, got one of numbers; use TextRegressor or "
                "load_run"
            )
        super()._fitted(run)
        given = run.given or {}
        kind = given.get("labels", "text")
        labels = [LABEL_KINDS.get(kind, str)(name) for name in run.classes]
        dtype = given.get("dtype", "O")
        if kind == "text":
            dtype = "U" if dtype == "U" else "O"
        found = np.array(labels, None if dtype == "O" and kind != "text" else dtype)
        # In the order that scikit-learn's measures assume; files of names may have another one.
        self._places = np.argsort(found, kind="stable")
        self.classes_ = found[self._places]

    def _names_in_order(self) -> list[str]:
        """The run's names of the classes, in the order of `classes_`."""
        return [self._run().classes[place] for place in self._places]

    def _answered(self, answers: Any) -> dict[str, Any]:
        columns = super()._answered(answers)
        if self._run().kind == "class":  # as they were in the table
            original = dict(zip(self._names_in_order(), self.classes_.tolist(), strict=True))
            columns["label"] = [original[name] for name in columns["label"]]
        return columns

    def _scores(self, texts: list[str]) -> np.ndarray:
        """Probabilities (N, C) float32."""
        answers = self._answers(texts)
        names = class_columns(self._run().classes)
        return np.column_stack([answers.column(name).to_numpy() for name in names])

    def _named(self, texts: list[str]) -> list[tuple[str, ...]]:
        """The classes or labels that texts are given."""
        answers = self._answers(texts)
        if self._run().kind == "labels":
            return [tuple(names) for names in answers.column("labels").to_pylist()]
        return [(name,) for name in answers.column("label").to_pylist()]

    def _names(self, label: Any) -> tuple[str, ...]:
        """The classes or labels that a row has."""
        if self._run().kind == "labels":
            return names_in(label_name(label, "labels"))
        return (label_name(label),)
