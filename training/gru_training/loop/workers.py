"""Workers that train one model together, each on its rows of every batch.

This is a thin layer over `tf.distribute`. Every worker is a process with the whole model, in
ordinary variables, on one device. It draws whole batches, so that the same seed gives the same
batches to any number of workers, and takes its rows of them. Gradients and sums over rows are added
up over the workers before they are used: all workers then have the same numbers, and take the same
steps and decisions. What is no sum over rows is done by the first worker alone.
"""

import functools
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.config import TaskConfig, to_dict
from gru_training.errors import ConfigError, LostWorkerError
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.cluster import ALONE, Place, find_place

_SEEDS = "seed_generator_state"
"""Name of the variables of Keras' random number generators."""
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


class Workers:
    """The workers of a training, seen from one of them.

    Args:
        place: Place of this process; by default it is alone.

    Attributes:
        count: Number of workers.
        first: Whether this worker writes the run.
    """

    def __init__(self, place: Place = ALONE):
        self.count, self._index = len(place.addresses), place.number
        self.first = self._index == 0
        self._strategy = _strategy() if self.count > 1 else None
        signature = [tf.TensorSpec([None], tf.float64)]
        self._sum = tf.function(self.summed, input_signature=signature, autograph=False)

    def rows(self, count: Any) -> slice:
        """Return this worker's rows of a batch of this many rows."""
        return slice(count * self._index // self.count, count * (self._index + 1) // self.count)

    def own(self, *batch: Any) -> tuple[Any, ...]:
        """Return this worker's rows of tensors (B, ...), in a graph; alone all, unchanged."""
        if self.count == 1:
            return batch
        rows = self.rows(batch[0].shape[0] or tf.shape(batch[0])[0])
        return tuple(values[rows] for values in batch)

    def summed(self, values: Any) -> Any:
        """Add up tensors over the workers, in a graph.

        Args:
            values: Tensors or sparse gradients in nested lists and dicts; None stays None.

        Returns:
            The sums. Those of sparse gradients may name a row several times.
        """
        if self._strategy is None:
            return values
        flat = tf.nest.flatten(values)
        own = [value for value in flat if value is not None]

        def add(own: Any) -> Any:
            # Copies are on the device of the worker, which the sums need to know.
            own = tf.nest.map_structure(tf.identity, own, expand_composites=True)
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, own)

        sums = iter(self._strategy.run(add, args=(own,)))
        return tf.nest.pack_sequence_as(
            values, [None if value is None else next(sums) for value in flat]
        )

    def joined(self, own: Any, count: Any) -> Any:
        """Join the rows (R, ...) of all workers to those of the batch, (B, ...), in a graph.

        Args:
            own: Values of this worker's rows.
            count: B.
        """
        if self.count == 1:
            return own
        rows = self.rows(count)
        further = [[0, 0]] * (len(own.shape) - 1)
        return self.summed(tf.pad(own, [[rows.start, count - rows.stop], *further]))

    def any(self, flag: bool) -> bool:
        """Tell whether the flag is set in any worker."""
        if self.count == 1:
            return flag
        return bool(self._total(np.array([flag])).any())

    def require_same(self, config: TaskConfig, data: str) -> None:
        """Compare the settings and the data of the training with those of the other workers.

        Args:
            config: Settings; those of the run directory may differ.
            data: Digest of the data.

        Raises:
            ConfigError: Some differ.
        """
        if self.count == 1:
            return
        settings = {name: part for name, part in to_dict(config).items() if name != "run"}
        facts = {"settings": settings, "data": data}
        digests = [zlib.crc32(json.dumps(each, sort_keys=True).encode()) for each in facts.values()]
        (firsts,) = self._of_first([np.array(digests)])
        alike = firsts == digests
        agreeing = self._total(alike)
        names = [name for name, count in zip(facts, agreeing, strict=True) if count < self.count]
        if names:
            raise ConfigError(
                f"expected the same {' and '.join(names)} in all {self.count} workers, got "
                "different ones; start each worker with the same command and the same data"
            )

    def agreed(self, state: Any, arrays: Sequence[Any]) -> tuple[Any, list[np.ndarray]]:
        """Return the first worker's state, a JSON value, and its arrays."""
        if self.count == 1:
            return state, list(arrays)
        text = np.frombuffer(json.dumps(state).encode(), np.uint8)
        (size,) = self._of_first([np.array(len(text))])
        text, *values = self._of_first([np.resize(text, int(size)), *map(np.asarray, arrays)])
        return json.loads(text.tobytes()), values

    def align(self, variables: Sequence[Any]) -> None:
        """Give all workers the variables of the first one, but random numbers of their own."""
        if self.count == 1:
            return
        values = self._of_first([np.asarray(variable) for variable in variables])
        for variable, value in zip(variables, values, strict=True):
            if variable.name.partition(":")[0] == _SEEDS:
                value[0] += self._index
            variable.assign(value)

    @contextmanager
    def needed(self, checkpoint: Checkpoint | None) -> Iterator[None]:
        """Say how to go on where another worker ends inside the context.

        Args:
            checkpoint: Checkpoint of the training, in the first worker.

        Raises:
            LostWorkerError: Another worker has ended.
        """
        try:
            yield
        except (*_LOST, LostWorkerError) as error:
            if self.count == 1:
                raise
            way_on = checkpoint.way_on if checkpoint else "the first worker says how to go on"
            raise LostWorkerError(f"another worker of this training has ended; {way_on}") from error

    def finish(self) -> None:
        """Wait until all workers have trained; from here on none needs the others."""
        if self.count > 1:
            try:
                self._sum(tf.zeros([1], tf.float64))
            except _LOST:  # it has arrived here before, and ended
                return

    def _of_first(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the first worker's arrays, whose shapes all workers know."""
        flat = np.concatenate([np.ravel(value).astype(np.float64) for value in values])
        flat = self._total(flat if self.first else np.zeros_like(flat))
        parts = np.split(flat, np.cumsum([value.size for value in values])[:-1])
        return [
            part.reshape(value.shape).astype(value.dtype)
            for part, value in zip(parts, values, strict=True)
        ]

    def _total(self, own: np.ndarray) -> np.ndarray:
        """Add up a vector over the workers, outside a graph."""
        with self.needed(None):
            return np.asarray(self._sum(tf.constant(own.astype(np.float64))))


def join_workers() -> Workers:
    """Join the other workers that TF_CONFIG names; alone where there are none.

    Of several GPUs that this process sees, it takes one: the first worker of a host takes the
    first, and so on. It must be called before TensorFlow computes anything.

    Raises:
        ConfigError: TF_CONFIG names no cluster with this process in it.
    """
    place = find_place()
    if len(place.addresses) > 1:
        gpus = tf.config.list_physical_devices("GPU")
        if len(gpus) > 1:
            tf.config.set_visible_devices(gpus[place.number_on_host % len(gpus)], "GPU")
    return Workers(place)


@functools.cache
def _strategy() -> tf.distribute.Strategy:
    """Make the strategy of TF_CONFIG, of which a process can have only one."""
    return tf.distribute.MultiWorkerMirroredStrategy()
