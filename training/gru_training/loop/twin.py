"""Traced functions that models of the same architecture share.

Tracing the steps of a model takes longer than many steps do. A later training, in the same process,
of a model with the same architecture, such as that of the next fold or the next estimator, uses the
functions of the first: its values are copied into a *twin*, to which the functions belong, and the
result of the training is copied back. The sizes of word tables are rounded up to a few values, as
two sets of texts rarely have the same number of words; nothing reads the additional rows, and they
stay 0.
"""

import json
import random
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import keras
import numpy as np

FunctionT = TypeVar("FunctionT")

MOST_PARAMETERS = 1 << 21
"""Most parameters of a model with a twin; training a larger one takes far longer than tracing."""
LEAST_TABLE = 1 << 11
"""Rows of a twin's smallest word table: half a megabyte at 64 numbers a word."""
_TWINS_KEPT = 4
_twins: "OrderedDict[str, Twin]" = OrderedDict()
_access = threading.Lock()


class Twin:
    """A model with the functions traced for it.

    Args:
        model: Model with the variables that the functions read and write.
    """

    def __init__(self, model: keras.Model):
        self.model = model
        self.lock = threading.Lock()
        self._functions: dict[Hashable, Any] = {}

    def function(self, key: Hashable, make: Callable[[], FunctionT]) -> FunctionT:
        """Return the function of this key, made at its first use."""
        if key not in self._functions:
            self._functions[key] = make()
        function: FunctionT = self._functions[key]
        return function

    def read(self, model: keras.Model) -> None:
        """Copy the values of a model of the same architecture, including random seeds."""
        for own, given in zip(self.model.variables, model.variables, strict=True):
            if own is given:
                continue
            value = np.asarray(given)
            missing = [(0, n - m) for n, m in zip(own.shape, value.shape, strict=True)]
            own.assign(np.pad(value, missing) if any(n for _, n in missing) else value)

    def write(self, model: keras.Model) -> None:
        """Copy the twin's values to a model of the same architecture."""
        for own, taken in zip(self.model.variables, model.variables, strict=True):
            if own is not taken:
                taken.assign(np.asarray(own)[tuple(map(slice, taken.shape))])


@contextmanager
def twin_of(model: keras.Model, new: bool = True) -> Iterator[Twin | None]:
    """Lend a model's twin, with the values of the model.

    Args:
        model: Functional or sequential, as it could be saved.
        new: Whether to make a twin where there is none.

    Yields:
        Twin; a new one if another thread uses the one of this architecture; None if the model is
        too large.
    """
    twin = None
    if model.count_params() <= MOST_PARAMETERS:
        config = _alike(keras.saving.serialize_keras_object(model))
        key = json.dumps(config, sort_keys=True, default=str)
        with _access:
            twin = kept = _twins.get(key)
            if kept is not None and not kept.lock.acquire(blocking=False):
                twin = None
            if twin is None and new:
                twin = Twin(_built(config))
                twin.lock.acquire()
                _twins.setdefault(key, twin)
            if key in _twins:
                _twins.move_to_end(key)
            while len(_twins) > _TWINS_KEPT:
                _twins.popitem(last=False)
    if twin is None:
        yield None
        return
    try:
        twin.read(model)
        yield twin
    finally:
        twin.lock.release()


def _alike(config: Any) -> Any:
    """Normalise a serialized model so that it equals all models of its architecture.

    Sizes of word tables are rounded up, and the names that Keras numbers through a process are
    numbered from the model's first layer.
    """
    names: dict[str, str] = {}

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            kind, name = part.get("class_name"), part.get("name")
            if isinstance(kind, str) and isinstance(name, str):
                stem = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
                if re.fullmatch(rf"{stem}(_\d+)?", name):
                    names.setdefault(name, f"{stem}_{len(names)}")
            part = list(part.values())
        if isinstance(part, list | tuple):
            for each in part:
                collect(each)

    def rewrite(part: Any) -> Any:
        if isinstance(part, str):
            return names.get(part, part)
        if isinstance(part, list | tuple):
            return [rewrite(each) for each in part]
        if not isinstance(part, dict):
            return part
        written = {key: rewrite(value) for key, value in part.items()}
        if written.get("class_name") == "Embedding":
            size = written["config"]["input_dim"]
            written["config"] = {**written["config"], "input_dim": rounded_rows(size)}
        return written

    collect(config)
    return rewrite(config)


def rounded_rows(rows: int) -> int:
    """Return the smallest table size for a number of rows: 4, 5, 6 or 7 times a power of 2."""
    if rows <= LEAST_TABLE:
        return LEAST_TABLE
    unit = 1 << ((rows - 1).bit_length() - 3)
    return -(-rows // unit) * unit


def _built(config: Any) -> keras.Model:
    """Build the model of a config without drawing from Python's random numbers."""
    state = random.getstate()
    try:
        model: keras.Model = keras.saving.deserialize_keras_object(config)
    finally:
        random.setstate(state)
    return model
