"""The flow of gradients back through the states of recurrent layers, and layers side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_gru.introspection.states import Array, StateTrajectory, advance, run
from keras_gru.layer import GRU
from keras_gru.missing_extra import naming_extra

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


# Layers side by side -----------------------------------------------------------------------------


def adding_problem(batch: int = 16, steps: int = 50, seed: Any = 0) -> tuple[Array, Array]:
    """Draw the adding problem (Hochreiter & Schmidhuber 1997): the sum of two marked numbers.

    Args:
        batch: Number B of sequences.
        steps: Length T of a sequence, at least 2. One number of each half is marked.
        seed: Seed of the draw, or a NumPy generator.

    Returns:
        Inputs (B, T, 2), a number in [−1, 1] and its mark; targets (B, 1).

    Raises:
        ValueError: `steps` is below 2.
    """
    if steps < 2:
        raise ValueError(f"Argument `steps` must be at least 2. Received: steps={steps}")
    rng = np.random.default_rng(seed)
    inputs = np.zeros((batch, steps, 2), np.float32)
    inputs[..., 0] = rng.uniform(-1, 1, (batch, steps))
    rows = np.arange(batch)
    inputs[rows, rng.integers(0, steps // 2, batch), 1] = 1
    inputs[rows, rng.integers(steps // 2, steps, batch), 1] = 1
    return inputs, np.sum(inputs[..., 0] * inputs[..., 1], axis=1, keepdims=True)


def compare_gradient_flow(
    inputs: Array,
    targets: Array,
    units: int = 32,
    *,
    layers: Mapping[str, Any] | None = None,
    epochs: int = 0,
    seed: int = 0,
) -> dict[str, GradientFlow]:
    """Compare the gradient flow of several recurrent layers on the same task.

    Each layer gets a linear readout of its last state and the mean squared error to the targets.

    Gates alone do not carry a gradient far: their biases decide. A GRU whose update gate starts
    near 1/2 halves the state at every step and reaches less far back than a vanilla RNN with an
    orthogonal recurrent kernel; an LSTM starts with a forget-gate bias of 1, and
    `initializers.recommended(max_period=...)` gives a GRU the reach that one asks for::

        compare_gradient_flow(*adding_problem(steps=100), layers={
            "GRU, zero biases": GRU(32),
            "GRU, chrono": GRU(32, **recommended(max_period=100))})

    Args:
        inputs: Input sequences, (B, T, D).
        targets: Targets of the readout, (B, K).
        units: Size U of the state of the three layers that are compared by default.
        layers: Other layers to compare, by name; each must return its last output only.
        epochs: Number of epochs that each network is trained on the batch before (Adam); 0
            compares the initial values.
        seed: Seed for `keras.utils.set_random_seed`. It does not reach layers given by the
            caller, which drew the seeds of their initial values when they were made.

    Returns:
        The gradient flow of each layer, by name.
    """
    keras.utils.set_random_seed(seed)
    if layers is None:
        layers = {
            "vanilla RNN": keras.layers.SimpleRNN(units),
            "LSTM": keras.layers.LSTM(units),
            "GRU": GRU(units),
        }
    flows = {}
    for name, layer in layers.items():
        readout = keras.layers.Dense(targets.shape[-1])
        model = keras.Sequential([keras.Input(inputs.shape[1:]), layer, readout])
        if epochs:
            model.compile("adam", "mse")
            model.fit(inputs, targets, epochs=epochs, verbose=0)

        def loss(states: Any, readout: Any = readout) -> Any:
            return tf.reduce_mean(tf.square(readout(states[:, -1]) - targets))

        flows[name] = gradient_flow(layer, inputs, loss)
    return flows


def plot_gradient_flow(flows: Mapping[str, GradientFlow]) -> Any:
    """Plot the reach of the state and of the loss gradient over time, one line per layer.

    Lines are medians over the batch, bands the middle 80 %. The dashed line is the bound (γλ)^(T−t)
    of a vanilla RNN.

    Args:
        flows: Gradient flows by name, as `compare_gradient_flow` returns them.

    Returns:
        A `matplotlib.figure.Figure`; `figure.savefig("flow.png")` writes it.

    Raises:
        ImportError: matplotlib is not installed.
    """
    with naming_extra("plot", "matplotlib"):
        from matplotlib.figure import Figure

    with_loss = [name for name, flow in flows.items() if flow.loss is not None]
    figure = Figure(figsize=(11 if with_loss else 6, 5), layout="constrained")
    axes = figure.subplots(1, 2 if with_loss else 1, squeeze=False)[0]
    for index, (name, flow) in enumerate(flows.items()):
        colour = f"C{index}"
        _plot_band(axes[0], flow.spectral, name, colour)
        if flow.bound is not None:
            label = f"{name}: (γλ)^(T−t), γλ = {flow.gamma_lambda:.3g}"
            axes[0].plot(flow.bound, linestyle="--", color=colour, label=label)
        if flow.loss is not None:
            _plot_band(axes[1], flow.loss, name, colour)
    titles = ("Jacobian of the last state: ‖∂h_T/∂h_t‖₂", "gradient of the loss: ‖∂L/∂h_t‖")
    for ax, title in zip(axes, titles, strict=False):
        ax.set_yscale("log")
        ax.set_title(title)
        ax.set_xlabel("step t")
        ax.grid(alpha=0.3)
    # A bound far above everything measured must not flatten it.
    axes[0].set_ylim(top=30 * max(flow.spectral.max() for flow in flows.values()))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _plot_band(ax: Any, norms: Array, label: str, colour: str) -> None:
    low, middle, high = np.quantile(norms, (0.1, 0.5, 0.9), axis=0)
    ax.plot(middle, color=colour, label=label)
    ax.fill_between(np.arange(len(middle)), low, high, color=colour, alpha=0.2, linewidth=0)


class ParameterCount(NamedTuple):
    """The number of parameters of one kind of layer."""

    layer: str
    formula: str
    """Formula in D features and U units."""

    predicted: int
    """Value of the formula."""

    actual: int
    """Number of parameters of a built layer."""


def parameter_counts(features: int, units: int) -> list[ParameterCount]:
    """Count the parameters of recurrent layers, by formula and in built layers.

    A GRU with the reset gate after the matmul has a second bias per gate.

    Args:
        features: Size D of the input.
        units: Size U of the state.
    """
    rows = (
        ("vanilla RNN", "U(D + U + 1)", 1, 1, keras.layers.SimpleRNN(units)),
        ("GRU, reset before", "3U(D + U + 1)", 3, 1, GRU(units, reset_after=False)),
        ("GRU, reset after", "3U(D + U + 2)", 3, 2, GRU(units)),
        ("LSTM", "4U(D + U + 1)", 4, 1, keras.layers.LSTM(units)),
    )
    counts = []
    for name, formula, blocks, biases, layer in rows:
        layer.build((None, None, features))
        predicted = blocks * units * (features + units + biases)
        counts.append(ParameterCount(name, formula, predicted, layer.count_params()))
    return counts


def parameter_table(features: int, units: int) -> str:
    """Write `parameter_counts` as a table, with each count relative to the vanilla RNN's.

    >>> print(parameter_table(100, 256))
    D = 100, U = 256     formula        predicted   actual  ratio
    vanilla RNN          U(D + U + 1)      91,392   91,392   1.00
    GRU, reset before    3U(D + U + 1)    274,176  274,176   3.00
    GRU, reset after     3U(D + U + 2)    274,944  274,944   3.01
    LSTM                 4U(D + U + 1)    365,568  365,568   4.00
    """
    counts = parameter_counts(features, units)
    heading = f"D = {features}, U = {units}"
    lines = [f"{heading:<20} {'formula':<14} {'predicted':>9} {'actual':>8}  ratio"]
    for layer, formula, predicted, actual in counts:
        ratio = actual / counts[0].actual
        lines.append(f"{layer:<20} {formula:<14} {predicted:>9,} {actual:>8,} {ratio:>6.2f}")
    return "\n".join(lines)
