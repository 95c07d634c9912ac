"""What answers one signature: its steps, and a graph that runs in parts of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort

from gru_serving.engine.native.arrays import as_bytes
from gru_serving.engine.native.brevity import Brevity
from gru_serving.engine.native.graph import refused
from gru_serving.engine.native.manifest import GraphCall
from gru_serving.engine.native.row_threads import LEAST_ROWS, in_parts, parts_of, running
from gru_serving.engine.native.run_watch import RunWatch
from gru_serving.engine.native.steps import Steps, Values
from gru_serving.errors import InvalidArgument


class Answer:
    """The graph and the steps of one signature.

    Args:
        call: Of the manifest.
        graph: Which it names, if any.
        steps: Of the version.

    Attributes:
        brevity: Of its runs.

    Raises:
        InvalidArgument: A step is unknown.
    """

    def __init__(self, call: GraphCall, graph: ort.InferenceSession | None, steps: Steps) -> None:
        self._graph = graph
        self._steps = steps.compile(call.steps)
        self._outputs = call.outputs
        self._inputs = [one.name for one in graph.get_inputs()] if graph else []
        self._given = {one.name for one in graph.get_outputs()} if graph else set[str]()
        self._rows_per_run = call.rows_per_run
        self.brevity = Brevity()

    def close(self) -> None:
        """Free the graph."""
        self._graph = None

    def run(
        self,
        values: Values,
        aliases: Sequence[str],
        watch: RunWatch,
        deadline: float | None,
        threads: int,
    ) -> list[np.ndarray]:
        """Do the steps, and run the graph.

        Args:
            values: The signature's inputs; what the steps make is added.
            aliases: Of the outputs wanted.
            watch: Of the model's runs.
            deadline: As of `RunWatch.watching`.
            threads: Among which rows may be divided.

        Raises:
            ServingError: The inputs are refused, or the run ends early or fails.
        """
        for step in self._steps:
            step(values)
        sources = [self._outputs[alias] for alias in aliases]
        wanted = [source for source in dict.fromkeys(sources) if source in self._given]
        if not self._given:
            return [values[name] for name in sources]
        feeds = {name: values[name] for name in self._inputs}
        rows = _rows_of(feeds)
        with running() as alone:
            alone = alone and rows >= 2 * LEAST_ROWS
            outputs = self._in_parts(wanted, feeds, rows, watch, deadline, threads if alone else 1)
        answers = dict(zip(wanted, map(as_bytes, outputs), strict=True))
        return [answers[name] if name in answers else values[name] for name in sources]

    def _in_parts(
        self,
        wanted: Sequence[str],
        feeds: Mapping[str, np.ndarray],
        rows: int,
        watch: RunWatch,
        deadline: float | None,
        threads: int,
    ) -> list[np.ndarray]:
        """One array per output wanted, whatever number of rows the graph takes at once."""
        if rows == 0:  # a recurrent node takes no empty batch
            one = {name: np.zeros((1, *a.shape[1:]), a.dtype) for name, a in feeds.items()}
            return [output[:0] for output in self._run(wanted, one, None, watch, deadline)]
        if threads == 1 and not self._rows_per_run:
            return self._run(wanted, feeds, None, watch, deadline)
        if self._rows_per_run:
            size = self._rows_per_run
            parts = [slice(low, low + size) for low in range(0, rows, size)]
            outputs = [self._run(wanted, feeds, part, watch, deadline) for part in parts]
        else:
            parts = parts_of(rows, threads)
            if len(parts) == 1:
                return self._run(wanted, feeds, None, watch, deadline)
            outputs = in_parts(lambda part: self._run(wanted, feeds, part, watch, deadline), parts)
        return [np.concatenate(each) for each in zip(*outputs, strict=True)]

    def _run(
        self,
        wanted: Sequence[str],
        feeds: Mapping[str, np.ndarray],
        part: slice | None,
        watch: RunWatch,
        deadline: float | None,
    ) -> list[np.ndarray]:
        if not wanted:
            return []
        if part is not None:
            feeds = {name: array[part] for name, array in feeds.items()}
        flags = ort.RunOptions()
        graph = self._graph
        with watch.watching(flags, deadline):
            assert graph is not None  # a closed session has let nobody in
            try:
                outputs: list[np.ndarray] = graph.run(wanted, feeds, flags)
            except Exception as error:
                raise refused(error) from None
        return outputs


def _rows_of(feeds: Mapping[str, np.ndarray]) -> int:
    rows = {name: len(array) if array.ndim else -1 for name, array in feeds.items()}
    if len(set(rows.values())) > 1 or -1 in rows.values():
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
        raise InvalidArgument(f"expected inputs of equally many rows, got {shapes}")
    return next(iter(rows.values()))
