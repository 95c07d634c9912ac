"""What the gates do and how large the gradients are, on a batch of validation rows."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from gru_training.loop.batches import Batch
from gru_training.loop.fit import PerRowFunction
from keras_gru import GRU
from keras_gru.introspection import gates_over_time


class _Call(NamedTuple):
    layer: GRU
    inputs: Any
    initial_state: Any
    mask: Any


def gates_and_gradients(
    model: keras.Model, loss: PerRowFunction, batch: Batch
) -> dict[str, np.ndarray]:
    """All values of the gates of each GRU, and of the gradient of each weight.

    The model answers as in use, without dropout, so that the random numbers of the training stay
    what they are.

    Args:
        model: That is trained.
        loss: What it minimises.
        batch: B rows.

    Returns:
        By `gates/LAYER/update` and `gates/LAYER/reset` the values at all steps that are not masked;
        by `gradients/WEIGHT` those of the mean loss.
    """
    with _calls(model) as calls, tf.GradientTape() as tape:
        outputs = model(batch.inputs, training=False)
        objective = tf.reduce_mean(loss(tf.convert_to_tensor(batch.targets), outputs))
    weights = model.trainable_variables
    gradients = tape.gradient(objective, weights)
    gates = defaultdict(list)
    for call in calls:
        activity = gates_over_time(call.layer, call.inputs, call.initial_state, call.mask)
        layer = call.layer.cell.kernel.path.rsplit("/", 2)[0]  # as gradients are named
        for name, gate in (("update", activity.z), ("reset", activity.r)):
            gates[f"gates/{layer}/{name}"].append(gate[~np.isnan(gate)])
    found = {name: np.concatenate(values) for name, values in gates.items()}
    for weight, gradient in zip(weights, gradients, strict=True):
        if gradient is not None:
            found[f"gradients/{weight.path}"] = np.ravel(tf.convert_to_tensor(gradient))
    return found


@contextmanager
def _calls(model: keras.Model) -> Iterator[list[_Call]]:
    """Within, the calls of the model's GRU layers are noted, however deep they are nested."""
    calls: list[_Call] = []
    layers = [each for each in model._flatten_layers() if isinstance(each, GRU)]

    def noting(layer: GRU) -> Any:
        called = layer.call

        def call(
            sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False
        ) -> Any:
            calls.append(_Call(layer, sequences, initial_state, mask))
            return called(sequences, initial_state=initial_state, mask=mask, training=training)

        return call

    for layer in layers:
        object.__setattr__(layer, "call", noting(layer))
    try:
        yield calls
    finally:
        for layer in layers:
            object.__delattr__(layer, "call")
