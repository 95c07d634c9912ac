"""Initial values for a GRU's weights, gate by gate.

>>> layer = GRU(64, **recommended())                              # no prior knowledge
>>> layer = GRU(64, **recommended(remember_bias=1.0))             # remember at first
>>> layer = GRU(64, **recommended(reset_bias=1.0))                # let the state into the candidate
>>> layer = GRU(64, **recommended(max_period=500))                # dependencies of up to 500 steps
>>> layer = GRU(64, **recommended(max_period=500, update_gate="replace"))
"""

from __future__ import annotations

import math
import random
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_gru.arguments import UPDATE_GATES, check_choice, configuration
from keras_gru.kernel.weights import GATE_COUNT

Tensor = Any


@keras.saving.register_keras_serializable(package="keras_gru")
class PerGate(keras.Initializer):
    """Applies an initializer to each gate's block of a packed kernel on its own.

    An initializer that sees the packed (U, 3U) or (D, 3U) as one matrix gives each gate something
    other than its name says. One orthogonal (U, 3U) matrix has orthonormal rows over all three
    blocks together: the singular values of a single gate's block spread below 1, to about 1/√3
    in the root mean square, where an orthogonal recurrent matrix is meant to keep the length of
    what passes through it (Saxe et al. 2014, arXiv:1312.6120). Glorot's limit √(6 / (fan in + fan
    out)) (Glorot & Bengio 2010) counts three times the U units that a gate has.

    >>> kernel = PerGate("orthogonal", seed=0)((4, 12)).numpy()
    >>> bool(np.allclose(kernel[:, :4] @ kernel[:, :4].T, np.eye(4), atol=1e-6))
    True

    Args:
        initializer: A Keras initializer, by name, config or instance.
        seed: Seed from which each gate gets one of its own. None draws anew in each instance.

    Raises:
        ValueError: The last axis does not divide into three gates; raised on a call.
    """

    def __init__(self, initializer: Any, seed: int | None = None) -> None:
        self.initializer = keras.initializers.get(initializer)
        if not isinstance(self.initializer, keras.Initializer):
            raise ValueError(
                "Argument `initializer` must be a Keras initializer. "
                f"Received: initializer={initializer!r}"
            )
        self.seed = seed
        self._drawn_seed = _drawn(seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Values of the packed shape (..., 3U)."""
        units = _units(shape, "PerGate")
        seeds = np.random.SeedSequence(self._drawn_seed).generate_state(GATE_COUNT)
        return tf.concat(
            [
                with_seed(self.initializer, int(seed >> 1))((*shape[:-1], units), dtype=dtype)
                for seed in seeds
            ],
            axis=-1,
        )

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument."""
        return configuration(self, PerGate.__init__)


@keras.saving.register_keras_serializable(package="keras_gru")
class RememberBias(keras.Initializer):
    """A bias with which the update gate keeps the state at first; all other biases are zero.

    The gate starts at keeping σ(value) of the state: 0.73 for the default of 1. The counterpart of
    the LSTM's forget-gate bias of 1 (Gers et al. 2000; Jozefowicz et al. 2015).

    Args:
        value: The bias of the update gate for `update_gate="keep"`; negated for `"replace"`.
        reset: The bias of the reset gate; positive lets the state into the candidate at first.
        update_gate: Update gate of the layer, `"keep"` or `"replace"`.

    Raises:
        ValueError: `update_gate` is unknown; on a call, if the shape is not that of a bias.
    """

    def __init__(self, value: float = 1.0, reset: float = 0.0, update_gate: str = "keep") -> None:
        self.value = float(value)
        self.reset = float(reset)
        check_choice("update_gate", update_gate, UPDATE_GATES)
        self.update_gate = update_gate

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Values of shape (2, 3U) or (3U,); of the two rows only the input's is not zero."""
        units = _units(shape, "RememberBias", bias=True)
        keep = np.full(units, self.value)
        return _bias(shape, keep, np.full(units, self.reset), self.update_gate, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument."""
        return configuration(self, RememberBias.__init__)


@keras.saving.register_keras_serializable(package="keras_gru")
class ChronoBias(keras.Initializer):
    """Chrono initialization (Tallec & Ollivier 2018, arXiv:1804.11188); other biases are zero.

    A unit whose update gate keeps σ(b) of the state forgets over T = 1 / (1 − σ(b)) steps, so
    b = log(T − 1). With T uniform over [2, `max_period`] the units cover the time scales up to
    the longest dependency expected: b = log u, u uniform over [1, `max_period` − 1].

    The inputs should have a mean near zero, so that the bias decides at first.

    Args:
        max_period: Longest dependency expected, in time steps; at least 2.
        update_gate: Update gate of the layer: the bias is b for `"keep"`, −b for `"replace"`.
        seed: Seed of the draw. None draws anew in each instance.
        reset: The bias of the reset gate.

    Raises:
        ValueError: An argument is outside the values named above; on a call, if the shape is not
            that of a bias.
    """

    def __init__(
        self,
        max_period: float,
        update_gate: str = "keep",
        seed: int | None = None,
        reset: float = 0.0,
    ) -> None:
        if not (math.isfinite(max_period) and max_period >= 2):
            raise ValueError(
                "Argument `max_period` must be a number of steps of at least 2. "
                f"Received: max_period={max_period!r}"
            )
        self.max_period = max_period
        self.reset = float(reset)
        check_choice("update_gate", update_gate, UPDATE_GATES)
        self.update_gate = update_gate
        self.seed = seed
        self._drawn_seed = _drawn(seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Values of shape (2, 3U) or (3U,); of the two rows only the input's is not zero."""
        units = _units(shape, "ChronoBias", bias=True)
        rng = np.random.default_rng(self._drawn_seed)
        keep = np.log(rng.uniform(1, self.max_period - 1, units))
        return _bias(shape, keep, np.full(units, self.reset), self.update_gate, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return every constructor argument."""
        return configuration(self, ChronoBias.__init__)


def recommended(
    update_gate: str = "keep",
    *,
    remember_bias: float = 0.0,
    reset_bias: float = 0.0,
    max_period: float | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Arguments for `GRU`, `GRUCell` and `GRUEncoder`: `GRU(64, **recommended())`.

    Input kernel: Glorot uniform per gate. Recurrent kernel: orthogonal per gate. Biases: zero, or
    `RememberBias`, or `ChronoBias` if the longest dependency can be named.

    Args:
        update_gate: Convention of the layer; also among the arguments returned.
        remember_bias: Bias with which the update gate keeps the state.
        reset_bias: Bias of the reset gate; positive lets the state into the candidate at first.
            It counts once, also where a layer adds two bias vectors.
        max_period: Longest dependency expected, in time steps; chrono initialization.
        seed: Seed of all draws.

    Returns:
        `update_gate` and the three initializers.

    Raises:
        ValueError: `remember_bias` and `max_period` are both given, or one is out of range.
    """
    if remember_bias and max_period is not None:
        raise ValueError(
            "Arguments `remember_bias` and `max_period` both set the update gate's bias; give one. "
            f"Received: remember_bias={remember_bias!r}, max_period={max_period!r}"
        )
    bias: Any = RememberBias(remember_bias, reset_bias, update_gate)
    if max_period is not None:
        bias = ChronoBias(max_period, update_gate, seed, reset_bias)
    return {
        "update_gate": update_gate,
        "kernel_initializer": PerGate("glorot_uniform", seed),
        "recurrent_initializer": PerGate("orthogonal", None if seed is None else seed + 1),
        "bias_initializer": bias,
    }


def with_seed(initializer: Any, seed: Any) -> Any:
    """Copy a Keras initializer, with another seed if it has one."""
    config = initializer.get_config()
    if "seed" in config:
        config["seed"] = seed
    return initializer.from_config(config)


def _drawn(seed: int | None) -> int:
    """Return the seed, or one from the generator that `keras.utils.set_random_seed` sets."""
    return random.randint(1, 2**31 - 1) if seed is None else seed


def _units(shape: tuple[int, ...], name: str, *, bias: bool = False) -> int:
    """U of a packed shape, or ValueError."""
    wanted = "(3U,) or (2, 3U)" if bias else "(..., 3U)"
    fits = len(shape) == 1 or tuple(shape[:-1]) == (2,) if bias else len(shape) > 1
    if not fits or shape[-1] % GATE_COUNT:
        raise ValueError(f"{name} initializes shapes {wanted}. Received: shape={tuple(shape)}")
    return int(shape[-1]) // GATE_COUNT


def _bias(shape: tuple[int, ...], keep: Any, reset: Any, update_gate: str, dtype: Any) -> Tensor:
    """Return a packed bias whose update gate keeps σ(keep) of the state in either convention."""
    values = np.zeros(shape)
    row = values if len(shape) == 1 else values[0]  # the rows are added: one of them holds it
    row[:] = np.concatenate([keep if update_gate == "keep" else -keep, reset, np.zeros_like(keep)])
    return tf.convert_to_tensor(values, dtype=tf.as_dtype(dtype or keras.config.floatx()))
