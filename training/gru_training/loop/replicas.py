"""Replicas of a model that train together, each on its share of every batch.

This is a thin layer over `tf.distribute`. Every worker draws the whole batch and each replica takes
its rows of it, so the same seed gives the same batches on any number of workers, and the gradient
is that of the whole batch. Sums are reduced over all replicas: every worker gets the same numbers
and stops at the same epoch.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import tensorflow as tf

from gru_training.errors import ConfigError

Distribution = Literal["none", "mirrored", "workers"]
ReplicaStep = Callable[[Any, Any], Mapping[str, Any]]


class Replicas:
    """The replicas of a strategy.

    Args:
        strategy: Strategy of `tf.distribute`; by default there is one replica.

    Attributes:
        count: Number of replicas, over all processes.
        alone: Whether no strategy was given.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None = None):
        self.alone = strategy is None
        self._strategy = strategy or tf.distribute.get_strategy()
        self.count: int = self._strategy.num_replicas_in_sync

    @property
    def writes(self) -> bool:
        """True if this process writes the run, as the first worker does."""
        resolver = self._strategy.cluster_resolver
        if not isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return True
        return resolver.task_type in (None, "chief") or (
            resolver.task_type == "worker"
            and resolver.task_id == 0
            and "chief" not in resolver.cluster_spec().jobs
        )

    def wait(self) -> None:
        """Wait until all processes have arrived: none may leave while others need it."""
        if not isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return

        @tf.function(autograph=False)
        def meet() -> Any:
            return self._strategy.run(
                lambda: tf.distribute.get_replica_context().all_reduce(
                    tf.distribute.ReduceOp.SUM, tf.ones(())
                )
            )

        meet()

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which the variables of model and optimizer are created."""
        scope: AbstractContextManager[Any] = self._strategy.scope()
        return scope

    def run(self, step: ReplicaStep, inputs: Any, targets: Any) -> Mapping[str, Any]:
        """Run a step in each replica with its rows of a batch; returns the sums of the results."""
        if self.count == 1:
            return step(inputs, targets)

        def with_share(inputs: Any, targets: Any) -> Mapping[str, Any]:
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            rows = tf.shape(targets)[0]
            share = slice(rows * number // self.count, rows * (number + 1) // self.count)
            return step(inputs[share], targets[share])

        results = self._strategy.run(with_share, args=(inputs, targets))
        return {
            name: self._strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)
            for name, value in results.items()
        }

    def mean(self, row_values: Any, rows: Any) -> Any:
        """Compute this replica's part of the mean over a batch of this many rows.

        The parts add up.
        """
        if self.count == 1:
            return tf.reduce_mean(row_values)
        return tf.reduce_sum(row_values) / tf.cast(rows, row_values.dtype)

    def summed(self, gradients: Sequence[Any]) -> list[Any]:
        """Add up gradients over the replicas; called by a step."""
        if self.count == 1:
            return list(gradients)
        context = tf.distribute.get_replica_context()
        return list(context.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients)))

    def apply(self, optimizer: Any, gradients: Sequence[Any]) -> None:
        """Apply gradients that are the same in all replicas; called by a step."""
        if self.count > 1:  # Keras' optimizers add up the gradients of all replicas
            gradients = [gradient / self.count for gradient in gradients]
        optimizer.apply(gradients)


def make_replicas(distribution: Distribution) -> Replicas:
    """Make the replicas of this name.

    `mirrored` makes one for each GPU of this machine (or logical device of its CPU), `workers` one
    or more for each process named in the environment variable TF_CONFIG. It must be called before
    any other use of TensorFlow.

    Raises:
        ConfigError: TF_CONFIG is missing or names no cluster.
    """
    if distribution == "none":
        return Replicas()
    if distribution == "mirrored":
        kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
        devices = [device.name for device in tf.config.list_logical_devices(kind)]
        return Replicas(tf.distribute.MirroredStrategy(devices))
    text = os.environ.get("TF_CONFIG", "")
    try:
        named = bool(json.loads(text)["cluster"]) and "task" in json.loads(text)
    except (ValueError, KeyError, TypeError):
        named = False
    if not named:
        raise ConfigError(
            "--distribute workers: expected the environment variable TF_CONFIG with a cluster and "
            'this process\'s task, as {"cluster": {"worker": ["host:port", ...]}, "task": '
            f'{{"type": "worker", "index": 0}}}}, got {text!r}'
        )
    return Replicas(tf.distribute.MultiWorkerMirroredStrategy())
