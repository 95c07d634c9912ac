"""Several classifiers in one: a functional model whose logits are a weighted sum of theirs.

The members' layers lie side by side in one graph and share its input, so that whatever looks at
layers, as the signatures and the graphs of ONNX, finds those of each member. Their names begin with
the member's.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras

_MEMBER = re.compile(r"member_\d+_")
_AVERAGE, _WEIGHT = "average", "weight"


class Member(NamedTuple):
    """A classifier within a model of `average`, or a model that is none."""

    model: keras.Model
    """From word ids to its own logits; its layers are those of the whole."""
    weight: float
    """Of its logits in the sum."""

    def layer(self, name: str) -> Any:
        """The layer that has this name in a model by itself."""
        return next(each for each in self.model.layers if own_name(each.name) == name)


def average(models: Sequence[keras.Model], weights: Sequence[float]) -> keras.Model:
    """One model of several; it has copies of their layers.

    Args:
        models: From word ids (B, T) to logits (B, C), all over the same ids and classes; none is a
            model of this function.
        weights: Of their logits in the sum.

    Returns:
        A model from `token_ids` (B, T) int32 to logits (B, C) float32.
    """
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    parts = []
    for number, (model, weight) in enumerate(zip(models, weights, strict=True), 1):
        start = f"member_{number}_"

        def renamed(layer: Any, start: str = start) -> Any:
            return type(layer).from_config({**layer.get_config(), "name": f"{start}{layer.name}"})

        copy = keras.models.clone_model(model, token_ids, clone_function=renamed)
        copy.set_weights(model.get_weights())
        parts.append(keras.layers.Rescaling(weight, name=f"{start}{_WEIGHT}")(copy.output))
    logits = keras.layers.Add(name=_AVERAGE)(parts)
    return keras.Model(token_ids, logits, name="ensemble")


def members_of(model: keras.Model) -> list[Member]:
    """The members of a model of `average`; of any other model itself alone, with the weight 1."""
    last = model.output._keras_history.operation
    if last.name != _AVERAGE:
        return [Member(model, 1.0)]
    layers = [tensor._keras_history.operation for tensor in last.input]
    return [Member(keras.Model(model.input, each.input), float(each.scale)) for each in layers]


def networks_of(model: keras.Model) -> keras.Model:
    """The mean of the logits of the members' networks, each without its n-gram regression."""
    logits = [member.layer("logits").output for member in members_of(model)]
    mean = logits[0] if len(logits) == 1 else keras.layers.Average()(logits)
    return keras.Model(model.input, mean, name="networks")


def own_name(name: str) -> str:
    """The name of a layer in a model by itself."""
    return _MEMBER.sub("", name, count=1)
