"""What known inputs add to a series: a regression on them, step by step.

A series with known inputs is taken as effect(inputs) + rest ("regression with ARIMA errors",
Hyndman and Athanasopoulos, Forecasting: Principles and Practice, chapter 10). Everything else
forecasts the rest; the effect of the steps ahead, whose inputs are known, is added to that.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

_MOST_KNOTS = 7
_REACH = 4.0
"""Standard deviations beyond which inputs count as if they were there."""


class KnownEffect:
    """A sum of piecewise linear functions of each input and, if wanted, of their products.

    All values are standardised. Either all K targets read the same F inputs, or, as in a panel,
    each has inputs of its own.

    Args:
        columns: Numbers of the input columns, F or K·F, those of a target side by side.
        knots: Of each input, ascending, where its function bends.
        coefficients: (P, K), of the P features that `features` makes, for the K targets.
        pairs: Whether there are products of an input and the functions of another.
        whose: Of a panel, whose the effect is, for people: of all series, or of each.
    """

    def __init__(
        self,
        columns: Sequence[int],
        knots: Sequence[Sequence[float]],
        coefficients: np.ndarray,
        pairs: bool,
        whose: str = "",
    ):
        self.whose = whose
        self.columns, self.pairs = tuple(columns), pairs
        self.knots = tuple(tuple(float(knot) for knot in each) for each in knots)
        self.coefficients = np.asarray(coefficients, np.float64)
        count = feature_count(self.knots, pairs)
        targets, read = self.coefficients.shape[-1], len(self.columns)
        self.by_series = targets > 1 and read == len(self.knots) * targets
        if (not self.by_series and read != len(self.knots)) or len(self.coefficients) != count:
            raise ValueError(
                f"expected knots of {read} inputs and coefficients of {count} "
                f"features, got {len(self.knots)} and {len(self.coefficients)}"
            )

    def __call__(self, inputs: Any) -> tf.Tensor:
        """Inputs (..., F or K·F) without NaN to effects (..., K), of their dtype."""
        if not self.by_series:
            made = features(inputs, self.knots, self.pairs)
            return tf.tensordot(made, tf.constant(self.coefficients, made.dtype), axes=1)
        inputs = tf.convert_to_tensor(inputs)
        sizes = [self.coefficients.shape[1], len(self.knots)]
        each = tf.reshape(inputs, tf.concat([tf.shape(inputs)[:-1], sizes], axis=0))
        total: Any = 0.0  # one feature at a time: all of them would take P times the memory
        of_each = zip(_features(each, self.knots, self.pairs), self.coefficients, strict=True)
        for feature, coefficients in of_each:
            total += feature * tf.constant(coefficients, inputs.dtype)
        return total

    def of_targets(self, targets: Sequence[int]) -> "KnownEffect":
        """The same on some of the targets, by their places; of a panel."""
        count = len(self.knots)
        columns = np.reshape(self.columns, (-1, count))[list(targets)].ravel().tolist()
        return KnownEffect(columns, self.knots, self.coefficients[:, list(targets)], self.pairs)

    def to_json(self) -> dict[str, Any]:
        """For `from_json`."""
        return {
            "columns": list(self.columns),
            "knots": [list(each) for each in self.knots],
            "coefficients": self.coefficients.tolist(),
            "pairs": self.pairs,
            "whose": self.whose,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "KnownEffect":
        """What `to_json` made."""
        columns, knots, coefficients = (values[n] for n in ("columns", "knots", "coefficients"))
        return cls(columns, knots, coefficients, values["pairs"], values.get("whose", ""))


def features(inputs: Any, knots: Sequence[Sequence[float]], pairs: bool) -> tf.Tensor:
    """Inputs (..., F) to features (..., P): x, max(x - knot, 0), and products with other inputs."""
    return tf.stack([*_features(inputs, knots, pairs)], axis=-1)


def _features(inputs: Any, knots: Sequence[Sequence[float]], pairs: bool) -> Iterator[tf.Tensor]:
    inputs = tf.clip_by_value(tf.convert_to_tensor(inputs), -_REACH, _REACH)
    each = tf.unstack(inputs, axis=-1)
    bases = [
        [x, *(tf.nn.relu(x - tf.constant(knot, x.dtype)) for knot in of)]
        for x, of in zip(each, knots, strict=True)
    ]
    yield from itertools.chain.from_iterable(bases)
    if pairs:
        for first, second in itertools.combinations(range(len(bases)), 2):
            yield from (each[first] * feature for feature in bases[second])
            yield from (each[second] * feature for feature in bases[first][1:])


def feature_count(knots: Sequence[Sequence[float]], pairs: bool) -> int:
    """P of `features`."""
    sizes = [1 + len(each) for each in knots]
    products = sum(a + b - 1 for a, b in itertools.combinations(sizes, 2)) if pairs else 0
    return sum(sizes) + products


def knots_of(column: np.ndarray) -> tuple[float, ...]:
    """Where the function of an input may bend: at quantiles, or between its few values.

    Args:
        column: (N,) of the training rows, without NaN.
    """
    values = np.unique(column)
    if len(values) <= _MOST_KNOTS + 2:  # at each value but the least and the greatest
        return tuple(values[1:-1].tolist())
    shares = np.linspace(0, 1, _MOST_KNOTS + 2)[1:-1]
    inner = np.unique(np.quantile(column, shares))
    return tuple(inner[(inner > values[0]) & (inner < values[-1])].tolist())
