"""The flow of gradients back through the states of a recurrent layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_gru.introspection.trajectory import Array, StateTrajectory, advance, run

_STEEPEST_SLOPE = {"tanh": 1.0, "sigmoid": 0.25, "relu": 1.0, "linear": 1.0}
"""sup |φ′| of each activation φ."""


@dataclass(frozen=True, eq=False)
class GradientFlow:
    """Norms of gradients over time; index t = 0 … T is the state after t steps, 0 the initial one.

    The state of an LSTM is h and c together. Steps count in processing order.
    """

    spectral: Array
    """‖∂h_T/∂h_t‖₂, the largest factor by which a change of the state at t grows, (B, T + 1)."""

    frobenius: Array
    """‖∂h_T/∂h_t‖_F, (B, T + 1)."""

    step: Array
    """‖∂h_t/∂h_{t−1}‖₂ of each step, (B, T)."""

    loss: Array | None
    """‖∂L/∂h_t‖ over all paths from h_t to the loss, (B, T + 1); None without a loss."""

    gamma_lambda: float | None
    """γλ with γ = sup `|φ′|` and λ = ‖U‖₂ of a vanilla RNN; None for gated cells."""

    @property
    def bound(self) -> Array | None:
        """(γλ)^(T−t) ≥ ‖∂h_T/∂h_t‖₂ of a vanilla RNN, (T + 1,), or None.

        Below 1, γλ makes gradients vanish; above 1, they may explode (Pascanu et al. 2013,
        arXiv:1211.5063).
        """
        if self.gamma_lambda is None:
            return None
        bound: Array = self.gamma_lambda ** np.arange(self.step.shape[1], -1.0, -1.0)
        return bound

    @property
    def product_of_steps(self) -> Array:
        """∏ ‖∂h_j/∂h_{j−1}‖₂ over j = t + 1 … T, (B, T + 1): never below `spectral`."""
        products = np.cumprod(self.step[:, ::-1], axis=1)[:, ::-1]
        return np.concatenate([products, np.ones((len(products), 1))], axis=1)


def gradient_flow(
    layer: Any,
    inputs: Any,
    loss: Callable[[Any], Any] | None = None,
    *,
    initial_state: Any = None,
    mask: Any = None,
) -> GradientFlow:
    """Compute the norms of the exact Jacobians and of the loss gradient over time, in inference.

    >>> inputs = np.random.default_rng(0).normal(size=(8, 60, 3)).astype("float32")
    >>> reach = {}
    >>> for name, options in (("zero", {}), ("chrono", {"max_period": 60})):
    ...     layer = GRU(16, **recommended(seed=1, **options))
    ...     reach[name] = float(np.median(gradient_flow(layer, inputs).spectral[:, 0]))
    >>> reach["zero"] < 1e-6, reach["chrono"] > 0.1
    (True, True)

    Args:
        layer: A recurrent layer or cell: GRU, SimpleRNN, LSTM and others with one cell.
        inputs: Input sequences, (B, T, D).
        loss: A function from the states (B, T, U), an LSTM's h, kept at masked steps, to a scalar.
        initial_state: State before the first step, (B, S); by default the cell's own.
        mask: Steps to compute, bool (B, T); a masked step passes the gradient on unchanged.

    Raises:
        ValueError: A shape does not fit, or the layer has no cell.
    """
    trajectory = run(layer, inputs, initial_state, mask)
    steps = _jacobians(layer, trajectory)
    B, T, S, _ = steps.shape
    to_end = np.empty((B, T + 1, S, S))
    to_end[:, T] = np.eye(S)
    for t in reversed(range(T)):
        to_end[:, t] = to_end[:, t + 1] @ steps[:, t]
    return GradientFlow(
        spectral=np.linalg.norm(to_end, ord=2, axis=(-2, -1)),
        frobenius=np.linalg.norm(to_end, axis=(-2, -1)),
        step=np.linalg.norm(steps, ord=2, axis=(-2, -1)),
        loss=None if loss is None else _loss_norms(loss, trajectory, steps),
        gamma_lambda=_gamma_lambda(layer),
    )


def state_jacobians(layer: Any, inputs: Any, initial_state: Any = None, mask: Any = None) -> Array:
    """Compute ∂h_t/∂h_{t−1} of every step, (B, T, S, S) in float64: [..., i, j] is ∂new_i/∂old_j.

    Args:
        layer: A recurrent layer or cell.
        inputs: Input sequences, (B, T, D).
        initial_state: State before the first step, (B, S); by default the cell's own.
        mask: Steps to compute, bool (B, T); the Jacobian of a masked step is the identity.
    """
    return _jacobians(layer, run(layer, inputs, initial_state, mask))


def _jacobians(layer: Any, trajectory: StateTrajectory) -> Array:
    cell = getattr(layer, "cell", layer)
    B, T, S = trajectory.states.shape
    # The states are known, so the steps are independent of each other: one batch of B·T.
    x = tf.reshape(trajectory.inputs, (B * T, -1))
    h = tf.reshape(trajectory.previous, (B * T, S))
    with tf.GradientTape() as tape:
        tape.watch(h)
        new = advance(cell, x, h, trajectory.state_sizes)
    jacobians = np.reshape(tape.batch_jacobian(new, h), (B, T, S, S)).astype(np.float64)
    jacobians[~trajectory.mask] = np.eye(S)
    return jacobians


def _loss_norms(loss: Callable[[Any], Any], trajectory: StateTrajectory, steps: Array) -> Array:
    B, T, S = trajectory.states.shape
    outputs = trajectory.states[..., : trajectory.state_sizes[0]]
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        value = loss(outputs)
    direct = np.zeros((B, T + 1, S))
    direct[:, 1:, : outputs.shape[-1]] = tape.gradient(
        value, outputs, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    total = np.empty_like(direct)
    total[:, T] = direct[:, T]
    for t in reversed(range(T)):
        total[:, t] = direct[:, t] + np.einsum("bij,bi->bj", steps[:, t], total[:, t + 1])
    norms: Array = np.linalg.norm(total, axis=-1)
    return norms


def _gamma_lambda(layer: Any) -> float | None:
    cell = getattr(layer, "cell", layer)
    if not isinstance(cell, keras.layers.SimpleRNNCell):
        return None
    slope = _STEEPEST_SLOPE.get(keras.activations.serialize(cell.activation))
    if slope is None:
        return None
    recurrent_kernel = tf.cast(cell.recurrent_kernel, tf.float64).numpy()
    return slope * float(np.linalg.norm(recurrent_kernel, ord=2))
