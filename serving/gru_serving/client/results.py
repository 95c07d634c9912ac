"""Typed answers of the models for texts and for forecasting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gru_serving.errors import FailedPrecondition, InvalidArgument, Unknown


@dataclass(frozen=True)
class Sentiment:
    """The class of one text.

    Attributes:
        label: The likeliest class.
        probability: Probability of that class.
        scores: Probability of every class, (C,).
        classes: Names of the classes; empty where they were not given.
    """

    label: str
    probability: float
    scores: np.ndarray
    classes: tuple[str, ...] = ()

    @property
    def by_class(self) -> dict[str, float]:
        """The probability of each class by its name; empty without names."""
        return dict(zip(self.classes, self.scores.tolist(), strict=False))

    @classmethod
    def from_outputs(
        cls, outputs: Mapping[str, np.ndarray], classes: Sequence[str] = ()
    ) -> list[Sentiment]:
        """Build one forecast per row from what `predict` returns for `serving_default` or `step`.

        Args:
            outputs: Arrays by name.
            classes: Names in the order of the scores, as `Client.classify` has them.

        Raises:
            FailedPrecondition: The model is no text classifier.
            InvalidArgument: There are more or fewer names than scores.
        """
        _require(outputs, label="text (B,)", probability="(B,)", scores="(B, C)")
        if classes and len(classes) != outputs["scores"].shape[1]:
            raise InvalidArgument(
                f"classes: expected {outputs['scores'].shape[1]} names, one for each score; got "
                f"{len(classes)}"
            )
        return [
            cls(label.decode("utf-8", "replace"), float(probability), scores, tuple(classes))
            for label, probability, scores in zip(
                outputs["label"], outputs["probability"], outputs["scores"], strict=True
            )
        ]


@dataclass(frozen=True)
class TextLabels:
    """The labels of one text.

    Attributes:
        labels: Labels that apply, the likeliest first.
        scores: Probability of every label, (C,).
        thresholds: Probabilities from which on each label applies, (C,).
    """

    labels: tuple[str, ...]
    scores: np.ndarray
    thresholds: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[TextLabels]:
        """Build one answer per row from what `predict` returns for `serving_default`.

        Raises:
            FailedPrecondition: The model answers no labels.
        """
        _require(outputs, labels="text (B, C)", scores="(B, C)", thresholds="(B, C)")
        return [
            cls(tuple(name.decode("utf-8", "replace") for name in names if name), scores, least)
            for names, scores, least in zip(
                outputs["labels"], outputs["scores"], outputs["thresholds"], strict=True
            )
        ]


@dataclass(frozen=True)
class Estimate:
    """The number estimated for one text.

    Attributes:
        value: The estimate.
        quantiles: The bounds of its intervals, ascending, (Q,); the model card has the levels.
    """

    value: float
    quantiles: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Estimate]:
        """Build one answer per row from what `predict` returns for `serving_default`.

        Raises:
            FailedPrecondition: The model estimates no numbers.
        """
        _require(outputs, value="(B,)", quantiles="(B, Q)")
        rows = zip(outputs["value"], outputs["quantiles"], strict=True)
        return [cls(float(value), quantiles) for value, quantiles in rows]


@dataclass(frozen=True)
class Explanation:
    """Gates of a text classifier: T tokens, L layers, R directions, U units, C classes.

    Attributes:
        tokens: Tokens as the model read them.
        update_gate: z, (T, L, R, U); with the layer's convention "keep", 1 keeps the old state.
        reset_gate: r, (T, L, R, U).
        state: State after each token, (T, L, R, U).
        scores: Probability of every class for the text up to that token, (T, C).
    """

    tokens: tuple[str, ...]
    update_gate: np.ndarray
    reset_gate: np.ndarray
    state: np.ndarray
    scores: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Explanation]:
        """Build one explanation, without padding, per row of what `predict` returns for `gates`.

        Raises:
            FailedPrecondition: The signature is another one.
        """
        names = ("update_gate", "reset_gate", "state", "scores")
        gates = dict.fromkeys(names[:3], "(B, T, L, R, U)")
        _require(outputs, tokens="text (B, T)", **gates, scores="(B, T, C)")
        explanations = []
        for row, padded in enumerate(outputs["tokens"]):
            tokens = tuple(token.decode("utf-8", "replace") for token in padded if token)
            arrays = (outputs[name][row, : len(tokens)] for name in names)
            explanations.append(cls(tokens, *arrays))
        return explanations


@dataclass(frozen=True)
class Attribution:
    """Contribution of each of T tokens to the answer of a text classifier.

    Attributes:
        tokens: Tokens as the model read them.
        scores: The share of each, (T,); they add up to `value - baseline`.
        label: The class or label explained; empty for a number.
        value: Log-odds of the label, or the number; `baseline` is that of words without meaning.
    """

    tokens: tuple[str, ...]
    scores: np.ndarray
    label: str
    value: float
    baseline: float

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Attribution]:
        """Build one attribution per row from what `predict` returns for `attribution`.

        Raises as `Explanation.from_outputs`.
        """
        labels = {"label": "text (B,)"} if "label" in outputs else {}
        forms = {"tokens": "text (B, T)", "attribution": "(B, T)", **labels}
        _require(outputs, **forms, value="(B,)", baseline="(B,)")
        found = []
        for row, scores in enumerate(outputs["attribution"]):
            tokens = [one.decode("utf-8", "replace") for one in outputs["tokens"][row] if one]
            label = outputs["label"][row].decode("utf-8", "replace") if labels else ""
            ends = (float(outputs[name][row]) for name in ("value", "baseline"))
            found.append(cls(tuple(tokens), scores[: len(tokens)], label, *ends))
        return found


@dataclass(frozen=True)
class Forecast:
    """The forecast of one series, in its own units: H horizons, K columns, Q levels.

    Attributes:
        values: The forecast, (H, K).
        quantiles: Quantiles of each value, ascending, (H, K, Q); the first and last bound the
            widest interval. The model card has the levels.
    """

    values: np.ndarray
    quantiles: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[Forecast]:
        """Build one forecast per row from what `predict` returns for `serving_default` or `step`.

        Raises:
            FailedPrecondition: The model is no forecaster.
        """
        _require(outputs, forecast="(B, H, K)", quantiles="(B, H, K, Q)")
        rows = zip(outputs["forecast"], outputs["quantiles"], strict=True)
        return [cls(values, quantiles) for values, quantiles in rows]


@dataclass(frozen=True)
class SeriesExplanation:
    """Gates of a forecaster: N segments or ticks, R GRUs side by side, U units.

    Attributes:
        end: The step of the history, from 0, with which each segment ends, (N,).
        update_gate: z, (N, R, U); 1 keeps the old state.
        reset_gate: r, (N, R, U).
        state: State after each segment, (N, R, U).
        values: Values of the columns forecast in the steps read, missing ones filled, (T', K).
    """

    end: np.ndarray
    update_gate: np.ndarray
    reset_gate: np.ndarray
    state: np.ndarray
    values: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, np.ndarray]) -> list[SeriesExplanation]:
        """Build one explanation per row of what `predict` returns for a forecaster's `gates`.

        Raises:
            FailedPrecondition: The signature is another one.
        """
        names = ("end", "update_gate", "reset_gate", "state", "values")
        gates = dict.fromkeys(names[1:4], "(B, N, R, U)")
        _require(outputs, end="(B, N)", **gates, values="(B, T, K)")
        return [cls(*row) for row in zip(*(outputs[name] for name in names), strict=True)]

    def of(self, number: int, labels: Sequence[str]) -> Explanation:
        """Return the gates of one GRU in the form of a text's `Explanation`.

        Args:
            number: Number of the GRU, from 0: of the forecast column where each has its own.
            labels: Labels of all steps of the history.

        Raises:
            InvalidArgument: There is no such GRU.
        """
        if not 0 <= number < self.state.shape[1]:
            raise InvalidArgument(
                f"expected a number below {self.state.shape[1]}, as many GRUs as run side by "
                f"side; got {number}"
            )
        if not all(0 <= end < len(labels) for end in self.end):  # NaN is not
            raise Unknown(
                f"the server's answer: output 'end': expected steps below {len(labels)}; got "
                f"{self.end.tolist()!r:.60}"
            )
        tokens = tuple(labels[int(end)] for end in self.end)
        update, reset, state = (
            gate[:, number, np.newaxis, np.newaxis]
            for gate in (self.update_gate, self.reset_gate, self.state)
        )
        return Explanation(tokens, update, reset, state, np.zeros((len(tokens), 0), np.float32))


_OPTIONAL_AXES = "BNT"  # rows, segments, tokens and steps


def _require(outputs: Mapping[str, np.ndarray], **forms: str) -> None:
    """Check that outputs have the given shapes and types, such as `(B, C)` numbers or `(B,)` texts.

    The same letter stands for the same size in all outputs.

    Raises:
        FailedPrecondition: An output is missing, as of another model.
        Unknown: An output has another form, which no model of ours gives.
    """
    if not outputs.keys() >= forms.keys():
        raise FailedPrecondition(
            f"expected a model with the outputs {sorted(forms)}; this one answers {sorted(outputs)}"
        )
    sizes: dict[str, int] = {}
    for name, form in forms.items():
        kind, _, shape = form.rpartition("(")
        letters = [letter for letter in shape.strip("(),").split(", ") if letter]
        array = outputs[name]
        is_text = array.dtype.kind in "OSU"
        fits = array.ndim == len(letters) and is_text == bool(kind) and array.dtype.kind != "c"
        if not fits or any(
            sizes.setdefault(letter, size) != size or (size == 0 and letter not in _OPTIONAL_AXES)
            for letter, size in zip(letters, array.shape, strict=True)
        ):
            raise Unknown(
                f"the server's answer: output {name!r}: expected {kind or 'numbers '}"
                f"({', '.join(letters)}); got {'texts' if is_text else array.dtype} "
                f"{list(array.shape)}"
            )
