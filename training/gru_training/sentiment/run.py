"""A run of the sentiment task.

Besides what every run holds (`gru_training.runs.directory`):

=========================  ====================================================================
classes.json               class names, in the order of the model's outputs
text_rules.json            whether texts are cleaned (`gru_training.words.tokens`), what their
                           tokens are (`gru_training.words.tokens.Reading`), and whether unknown
                           words are read as known ones (`gru_serving.preprocessing.texts.Words`)
training_texts.npy         digests of the texts that the run has learned from, and the run whose
                           weights it began with: gru_training.sentiment.warm_start
vocabulary.txt             one token per line; the line number from 0 is the id
temperature.json           see gru_training.sentiment.decision
decision.json              thresholds and utilities of classes and labels: see
                           gru_training.sentiment.decision
scale.json                 of a number to estimate its units and intervals, in place of those two
model.onnx                 the model for ONNX Runtime, from word ids to logits; none where ONNX
                           cannot express it, and none of runs that were trained in Python
tokens.json                how texts become tokens without TensorFlow, beside model.onnx
                           (`gru_serving.preprocessing.texts.Tokenizer`)
test_predictions.jsonl     text, label, predicted, scores of each held-out test row
test_baselines.json        what each simple model answers to these rows, classes as numbers
marked_texts.json          the most confident answers to test rows, the share of each word, for
                           the report's page
doubtful_labels.csv        training rows whose label is probably wrong, if there are any
curves.png                 loss and accuracy over the epochs
confusion_matrix.png       label against prediction on the test rows
calibration.png            confidence against accuracy on the test rows
=========================  ====================================================================
"""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gru_training.config import from_dict
from gru_training.data.label_cells import TargetKind
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.runs.directory import TaskRun
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.decision import Decision, Scale, Temperature, decision_from_json

if TYPE_CHECKING:
    import keras

    from gru_training.sentiment.served.head import Head
    from gru_training.words.tokens import Reading
    from gru_training.words.vocabulary import TextPreprocessor, Vocabulary

TEXT_RULES = "text_rules.json"


class LabelledPrediction(NamedTuple):
    """A held-out row with the model's answer."""

    text: str
    label: Any
    """The class; the list of labels; or the number."""
    predicted: Any
    """Predicted class, list of labels, or number."""
    scores: list[float]
    """Probability of each class, in the order of the classes, after temperature scaling; of a
    number the bounds of its intervals."""


class SentimentRun(TaskRun):
    """A complete run of the sentiment task."""

    @cached_property
    def config(self) -> SentimentConfig:
        """The settings of the run."""
        return self._read_config("sentiment", SentimentConfig)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class names in the order of the model's outputs."""
        names = self._json("classes.json")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RunDirectoryError(
                f"{self.path / 'classes.json'}: expected a list of names, got {names!r:.80}"
            )
        return tuple(names)

    @cached_property
    def temperature(self) -> Temperature:
        """The divisor of the logits before the softmax."""
        name = "temperature.json"
        try:
            return from_dict(Temperature, self._json(name))
        except ConfigError as error:
            raise RunDirectoryError(f"{self.path / name}: {error}") from error

    @cached_property
    def kind(self) -> TargetKind:
        """The kind of the labels: class, labels or number."""
        if (self.path / "scale.json").is_file():
            return "number"
        return "labels" if self.metrics["target"] == "labels" else "class"

    @cached_property
    def decision(self) -> Decision:
        """The choice of classes or labels."""
        name = "decision.json"
        try:
            return decision_from_json(self._json(name))
        except ConfigError as error:
            raise RunDirectoryError(f"{self.path / name}: {error}") from error

    @cached_property
    def scale(self) -> Scale:
        """The scale of a number to estimate."""
        try:
            values = self._json("scale.json")
            offsets = tuple(map(float, values["offsets"]))
            return Scale(float(values["mean"]), float(values["deviation"]), offsets)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RunDirectoryError(f"{self.path / 'scale.json'}: {error!r}") from error

    def head(self) -> "Head":
        """Make the head that converts the model's logits to answers."""
        from gru_training.sentiment.served.head import ClassHead, LabelsHead, NumberHead

        if self.kind == "number":
            return NumberHead(self.classes[0], self.scale)
        kind = LabelsHead if self.kind == "labels" else ClassHead
        return kind(self.classes, self.temperature.value, self.decision)

    @property
    def cleaned(self) -> bool:
        """True if texts are cleaned before they are read."""
        return bool(self._text_rules["cleaned"])

    @property
    def reading(self) -> "Reading":
        """The rule that splits texts into tokens."""
        return cast("Reading", self._text_rules["reading"])

    @property
    def backoff(self) -> bool:
        """True if unknown words are read as known ones."""
        return bool(self._text_rules["backoff"])

    @cached_property
    def _text_rules(self) -> dict[str, Any]:
        rules = self._json(TEXT_RULES)
        kinds = {"cleaned": bool, "reading": str, "backoff": bool}
        fits = isinstance(rules, dict) and {n: type(v) for n, v in rules.items()} == kinds
        if not fits or rules["reading"] not in ("words", "spaced"):
            raise RunDirectoryError(
                f"{self.path / TEXT_RULES}: expected cleaned, reading (words or spaced) and "
                f"backoff, got {rules!r:.60}"
            )
        return cast(dict[str, Any], rules)

    @cached_property
    def vocabulary(self) -> "Vocabulary":
        """The known words."""
        from gru_training.words.vocabulary import load_vocabulary

        try:
            return load_vocabulary(self.path / "vocabulary.txt")
        except (DataError, ValueError) as error:
            raise RunDirectoryError(str(error)) from error

    def preprocessor(self) -> "TextPreprocessor":
        """Return the conversion of text to word ids, as in training."""
        from gru_training.words.vocabulary import TextPreprocessor

        return TextPreprocessor(
            self.vocabulary,
            self.config.data.max_tokens,
            self.cleaned,
            self.reading,
            self.backoff,
        )

    def load_model(self) -> "keras.Model":
        """Load the model of the best epoch, from word ids (B, T) int32 to logits (B, C).

        Raises:
            RunDirectoryError: The file is damaged, or the model has another number of classes
                than the run.
        """
        model = super().load_model()
        if model.output_shape[-1] != len(self.classes):
            raise RunDirectoryError(
                f"{self.path}: expected as many classes as outputs of model.keras, "
                f"{model.output_shape[-1]}; got {len(self.classes)} in classes.json"
            )
        return model

    def test_predictions(self) -> Iterator[LabelledPrediction]:
        """Yield the held-out test rows with the model's answers, in the order of the data."""
        path = self.path / "test_predictions.jsonl"
        try:
            with path.open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    yield LabelledPrediction(**json.loads(line))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise RunDirectoryError(f"cannot read {path}: {error}") from error

    def baseline_predictions(self) -> dict[str, np.ndarray]:
        """Return the class numbers (N,) that the simple models answer to the test rows, by name."""
        name = "test_baselines.json"
        try:
            answers = {floor: np.array(row) for floor, row in self._json(name).items()}
        except (AttributeError, ValueError) as error:
            raise RunDirectoryError(
                f"{self.path / name}: expected answers by the name of a model: {error}"
            ) from error
        for floor, row in answers.items():
            if row.dtype.kind not in "biuf":
                raise RunDirectoryError(
                    f"{self.path / name}: expected numbers as answers of {floor!r}, got "
                    f"{row.tolist()!r:.60}"
                )
        return answers


def model_name(metrics: Mapping[str, Any]) -> str:
    """Name a classifier for tables.

    Args:
        metrics: Values of `metrics.json`.
    """
    combined = "gru_alone" in metrics or "shares" in metrics
    return "GRU and n-grams" if combined else "GRU"
