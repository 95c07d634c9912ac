"""The plan of a fused sequence: compiled by XLA or not, and how many blocks of what size.

The rule, in this order:

1. In a function that XLA compiles as a whole (`jit_compile=True`): inline, in one block.
2. In eager code, in a graph traced for export, for a single step and where XLA does not work: plain
   operations. In a graph, a large batch is cut into two blocks of rows, which run side by side; an
   inference is a loop of `export`, whatever the rows.
3. In any other graph: each block of rows in an XLA function of its own ("nested"), one per core.

Stock TF Serving refuses SavedModels that hold XLA functions; hence the second point.

XLA compiles anew for every shape. To avoid a compilation for every length of the data, sizes are
padded to a few (`Extent`): those that the graph does not know, and known lengths once there are
several of them. Padded steps cost memory and hardly any time: the loop ends after the real ones,
and the products around it see no others. Padded rows cost as much as real ones, so there are more
sizes of them.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import tensorflow as tf

# Only these private modules show that a function is traced for XLA, or for a SavedModel.
from tensorflow.python.ops import control_flow_util
from tensorflow.python.saved_model import save_context

from keras_gru.kernel.equations import Convention
from keras_gru.kernel.loop import Shared
from keras_gru.kernel.weights import Gates, PackedWeights

Tensor = Any

# Thresholds of the rule, tuned on two cores with AVX-512; docs/notes/layer_performance.md has what
# was measured on either side of each, and `python -m benchmarks.layer.thresholds` measures six of
# them on the present machine.

# Least work for which a second block of rows gains more than its launch costs. Work is B·T·U·(U +
# ELEMENTWISE): the recurrent products, and everything else expressed as further columns.
SMALL_WORK = 1 << 24
ELEMENTWISE = 50
# If the number of rows is unknown, batches of up to this many rows with little work are one block.
MOST_FEW_ROWS = 16
# Up to this many rows with at least this many units, reading the weights dominates, and each block
# would read them.
FEW_ROWS = 4
MANY_UNITS = 400
# Assumed steps of a sequence of unknown length. A wrong assumption costs little.
TYPICAL_STEPS = 100
# Without XLA a block has a cost at every step. This is the least number of elements of the state
# for which a second block gains more.
SMALL_PLAIN_STATE = 1 << 12
# Number of units per feature from which XLA projects the inputs faster in the loop than before it,
# since the result is much larger than the inputs.
UNITS_PER_FEATURE = 8
# Number of features up to which the same holds if the state is not small: writing and reading the
# result takes longer than many small products.
FEW_FEATURES = 1 << 7
SMALL_STATE = 1 << 11
# Greatest number of elements of the state times units for which XLA takes longer to write the gates
# of a step than to recompute those of all steps in one large product.
MAX_RECALLED_WORK = 1 << 15
# Steps per iteration of a plain loop, whose own operations cost as much as a small step; a power of
# two.
UNROLL = 8
# Steps per iteration of an inference in an export, where every node delays the first answer.
EXPORT_UNROLL = 4
# Steps per iteration if XLA projects the inputs in the loop and keeps nothing for a backward pass.
PROJECTING_UNROLL = 2
# Blocks of rows of a plain graph, fixed because an export may move to any machine.
PLAIN_BLOCKS = 2

# Sizes to which steps and rows are padded.
STEPS = [32, *(2**k for k in range(7, 10)), *(2**k * m // 2 for k in range(9, 27) for m in (3, 4))]
# Least size for blocks whose state has at most this many elements: there a program costs more than
# the memory.
SMALL_CAPACITY, SMALL_BLOCK_STATE = 128, 1 << 11
ROWS = [1, 2, 4] + [2**k * m // 4 for k in range(3, 28) for m in (4, 5, 6, 7)]
# Number of lengths that are not padded, for sequences whose length the graph knows.
EXACT_LENGTHS = 4

_FUNCTIONS_KEPT = 512
_exact_lengths: dict[Any, list[int]] = {}

# Modules that trace a model for a file, and the runtime of the file.
_EXPORTERS = {
    "keras.src.export.litert": "litert",
    "keras_gru.convert.tflite": "litert",
    "tensorflow.lite": "litert",
    "keras.src.export.onnx": "onnx",
    "tf2onnx": "onnx",
    "keras.src.export": "tensorflow",
}

# Runtimes other than TensorFlow, whose graphs are read by a converter.
CONVERTED_RUNTIMES = ("onnx", "litert")

_portable: ContextVar[bool] = ContextVar("keras_gru_portable", default=False)


class Plan(NamedTuple):
    """The plan of a run over a sequence."""

    compiled: bool
    """Whether XLA compiles the loop, in a function of its own or with what is around it."""
    nested: bool
    """Whether each block of rows is a call of a function."""
    blocks: int
    """Number of blocks of rows."""
    unroll: int
    """Steps per iteration of the loop."""
    project_in_loop: bool
    """Whether the inputs are projected step by step."""
    recall: bool
    """Whether the backward pass computes the gates anew, those of all steps at once, instead of
    reading what the forward pass wrote down step by step."""
    target: str | None
    """Runtime that the graph is exported for, see `export_target`, or None."""

    def for_inference(self) -> Plan:
        """Return the plan of a forward pass that no backward pass follows."""
        if self.compiled and self.project_in_loop:
            return self._replace(unroll=PROJECTING_UNROLL)
        return self

    def inline(self) -> Plan:
        """Return the plan without functions, for derivatives of derivatives."""
        return self._replace(nested=False, unroll=1)


class Operands(NamedTuple):
    """Tensors for which a sequence has gradients; shapes as in `functional.sequence`."""

    inputs: Tensor
    initial_state: Tensor
    weights: PackedWeights


class Options(NamedTuple):
    """Masks and settings of a sequence, for which there are no gradients."""

    mask: Tensor | None
    zoneout: Tensor | None
    recurrent_mask: Gates | None
    input_mask: Gates | None
    convention: Convention
    go_backwards: bool
    plan: Plan


def choose_plan(path: str, rows: int | None, steps: int | None, features: int, units: int) -> Plan:
    """Choose how to run a sequence.

    The path is `"auto"` or `"fused"` for the rule of this module, or the path to take; rows and
    steps are None if they are unknown.

    Raises:
        RuntimeError: `path` is `"xla"` where XLA cannot be used.
    """
    inside, target, eager = in_xla(), export_target(), tf.executing_eagerly()
    if path == "xla":
        _check_xla(inside, target)
    avoided = path == "plain" or steps == 1 or eager or target is not None
    compiles = (path == "xla" or not avoided) and not inside and _xla_works()
    compiled = inside or compiles
    large = steps != 1  # worth cutting into blocks of rows
    if rows is not None and compiled:
        work = rows * (steps or TYPICAL_STEPS) * units * (units + ELEMENTWISE)
        large &= work >= SMALL_WORK and not (rows <= FEW_ROWS and units >= MANY_UNITS)
    elif rows is not None:
        large &= rows * units >= SMALL_PLAIN_STATE
    recalled = rows is not None and rows * units**2 <= MAX_RECALLED_WORK
    small = recalled or (rows is not None and rows * units <= SMALL_STATE)
    wider = units >= UNITS_PER_FEATURE * features
    in_loop = large and (not compiled or wider or (not small and features <= FEW_FEATURES))
    parallel = compiles or not (inside or eager)
    blocks = min(cores() if compiles else PLAIN_BLOCKS, rows or sys.maxsize)
    unroll = 1
    if not (compiled or eager or steps == 1):
        unroll = UNROLL if target is None else EXPORT_UNROLL
    return Plan(
        compiled=compiled,
        nested=compiles or (target is not None and unroll > 1),
        blocks=blocks if parallel and large and not on_gpu() else 1,
        unroll=unroll,
        project_in_loop=in_loop,
        recall=compiled and not in_loop and recalled,
        target=target,
    )


def plain_blocks(rows: Any, units: int) -> Any:
    """Return the number of row blocks of an inference without XLA.

    An int if the number of rows is one.
    """
    if isinstance(rows, int):
        return PLAIN_BLOCKS if rows > 1 and rows * units >= SMALL_PLAIN_STATE else 1
    large = tf.logical_and(rows > 1, rows * units >= SMALL_PLAIN_STATE)
    return tf.where(large, PLAIN_BLOCKS, 1)


def rows_of_one_block(units: int) -> int:
    """Return the rows up to which a batch of unknown size is one block; a power of two."""
    rows = SMALL_WORK // (TYPICAL_STEPS * units * (units + ELEMENTWISE))
    return 1 << (min(max(rows, 1), MOST_FEW_ROWS).bit_length() - 1)


def cores() -> int:
    """Return the number of usable cores.

    It is smaller if TensorFlow's intra-op threads are limited.
    """
    allowed = tf.config.threading.get_intra_op_parallelism_threads()
    if hasattr(os, "sched_getaffinity"):
        return allowed or len(os.sched_getaffinity(0))
    return allowed or os.cpu_count() or 1


@functools.cache
def on_gpu() -> bool:
    """Tell whether TensorFlow sees a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))


# Blocks of rows -------------------------------------------------------------------------------


class Extent(NamedTuple):
    """Size of a batch, and how it is cut."""

    rows: Any
    """B, an int where it is known, else a scalar tensor."""
    steps: Any
    """T, the same."""
    block_rows: Any
    """Rows of a block; unless `pads_rows`, at most that."""
    capacity: Any
    """Steps of a block."""
    blocks: int
    """Number of blocks."""
    pads_rows: bool
    """Whether rows are filled up to `block_rows` in every block."""
    pads_steps: bool
    """Whether steps are filled up to `capacity`."""

    @classmethod
    def of(cls, inputs: Tensor, plan: Plan, units: int) -> Extent:
        """Return the extent of inputs (B, T, D) with a state (B, U)."""
        rows, steps = inputs.shape[:2]
        unknown_rows, unknown_steps = rows is None, steps is None
        if unknown_rows or unknown_steps:
            sizes = tf.unstack(tf.shape(inputs))
            rows, steps = (
                known or size for known, size in zip((rows, steps), sizes[:2], strict=True)
            )
        block_rows = (rows + plan.blocks - 1) // plan.blocks
        pads_rows = pads_steps = False
        if plan.nested and plan.compiled:
            block_rows = _padded_rows(rows, block_rows, units) if unknown_rows else block_rows
            pads_rows = unknown_rows or rows % plan.blocks > 0
            pads_steps = unknown_steps or _is_one_of_many(steps, (inputs.shape[-1], plan))
        capacity = _capacity(steps, block_rows * units) if pads_steps else steps
        return cls(rows, steps, block_rows, capacity, plan.blocks, pads_rows, pads_steps)

    def steps_by_block(self, plan: Plan) -> list[Tensor]:
        """Return the steps to take in each block, a scalar: one if all its rows are padding.

        Not zero: where `tape.jacobian` vectorises the function, there is no XLA, and TensorFlow's
        executor cannot stack the states of no step.
        """
        steps = tf.convert_to_tensor(self.steps)
        compiled = plan.nested and plan.compiled
        if isinstance(self.rows, int) or not (self.pads_rows and compiled):
            return [steps] * self.blocks
        firsts = [block * self.block_rows for block in range(1, self.blocks)]
        one = tf.minimum(steps, 1)
        return [steps, *(tf.where(self.rows > first, steps, one) for first in firsts)]

    def cut(self, values: Any, timed: bool = False) -> list[Any]:
        """Cut values with the batch axis first into those of each block.

        Tuples are cut one by one; scalars and None go to all blocks. `timed` values have time as
        their second axis, to be filled up.
        """
        if isinstance(values, tuple):
            parts = zip(*(self.cut(value, timed) for value in values), strict=True)
            return [type(values)(*part) for part in parts]
        if values is None or values.shape.rank == 0:
            return [values] * self.blocks
        if self.pads_rows or (timed and self.pads_steps):
            values = self._pad(values, timed and self.pads_steps)
        if self.blocks == 1:
            return [values]
        if self.pads_rows or (isinstance(self.rows, int) and self.rows % self.blocks == 0):
            return list(tf.split(values, self.blocks))
        starts = [block * self.block_rows for block in range(self.blocks)]
        return [values[start : start + self.block_rows] for start in starts]

    def join(self, values: list[Tensor], timed: bool = False) -> Tensor:
        """Join the values of all blocks, the inverse of `cut`.

        Padding of time may have been removed already.
        """
        whole = values[0] if len(values) == 1 else tf.concat(values, 0)
        whole = whole[: self.rows] if self.pads_rows else whole
        rows = self.rows if isinstance(self.rows, int) else None
        steps = self.steps if isinstance(self.steps, int) else None
        # tf.ensure_shape is not used: tf.autodiff.ForwardAccumulator fails at its partly known
        # shapes.
        whole.set_shape([rows, steps, *whole.shape[2:]] if timed else [rows, *whole.shape[1:]])
        return whole

    def without_padded_steps(self, values: Any) -> Any:
        """Cut time-major values (capacity, …, …) to (T, …, …).

        None and values without time stay.
        """
        if not self.pads_steps:
            return values
        bounds = tf.constant([0]), tf.stack([self.steps]), tf.constant([1])

        def cut(value: Tensor | None) -> Tensor | None:  # not by [:], which makes bounds each time
            timed = value is not None and value.shape.rank == 3
            return tf.strided_slice(value, *bounds) if timed else value

        return tf.nest.map_structure(cut, values)

    def _pad(self, values: Tensor, timed: bool) -> Tensor:
        missing = self.blocks * self.block_rows - self.rows if self.pads_rows else 0
        paddings = [[0, missing]]
        if timed:
            paddings.append([0, self.capacity - self.steps])
        paddings += [[0, 0]] * (values.shape.rank - len(paddings))
        return tf.pad(values, tf.stack(paddings))


def block_call(
    plan: Plan, function: Callable[..., Any], tensors: tuple[Any, ...], *options: Any
) -> Callable[[], Any]:
    """Make a call of `function(*tensors, *options)` as the plan wants it.

    A nested call is a function of its own, shared by all equal calls: a graph holds its body once,
    however many layers, directions and signatures call it. A function that XLA compiles is traced
    once for batches of all sizes. Tensors stand alone, in tuples or as None.
    """
    if not plan.nested:
        return functools.partial(function, *tensors, *options)
    specs = []
    for part in tensors:
        exact = isinstance(part, Shared) or not plan.compiled
        specs.append(tf.nest.map_structure(functools.partial(_spec, exact=exact), part))
    nested = _function(function, tuple(specs), options, plan.compiled or None)
    return functools.partial(nested, *present(tensors))


@functools.lru_cache(_FUNCTIONS_KEPT)
def _function(
    function: Callable[..., Any], specs: Any, options: Any, jit_compile: bool | None
) -> Any:
    # One function per set of shapes: TensorFlow warns if one is traced repeatedly.
    def run(*leaves: Tensor) -> Any:
        return function(*filled(specs, leaves), *options)

    run.__name__ = f"gru_{function.__name__.strip('_')}"  # `compilations` tells by it
    return tf.function(run, present(specs), jit_compile=jit_compile, autograph=False)


def present(structure: Any) -> list[Any]:
    """List the tensors of a structure, without None."""
    return [value for value in tf.nest.flatten(structure) if value is not None]


def filled(structure: Any, tensors: Any) -> Any:
    """Put tensors in place of those of a structure; None stays None."""
    following = iter(tensors)
    return tf.nest.map_structure(lambda v: None if v is None else next(following), structure)


def in_this_graph(structure: Any) -> Any:
    """Copy tensors of other graphs into the one being built.

    Gradients are built in a graph of their own. The tensors that their own derivatives use must be
    in that graph, not in the surrounding one, or else forward-mode derivatives of functions fail.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    def local(value: Any) -> Any:
        foreign = graph is not None and tf.is_tensor(value) and hasattr(value, "graph")
        return tf.identity(value) if foreign and value.graph is not graph else value

    return tf.nest.map_structure(local, structure)


def _spec(value: Tensor | None, exact: bool) -> tf.TensorSpec | None:
    """Return a spec of these sizes or any: then only the last axis is fixed, and none of a mask."""
    if value is None or exact:
        return None if value is None else tf.TensorSpec(value.shape, value.dtype)
    known = () if value.dtype == tf.bool else value.shape[-1:]
    return tf.TensorSpec([None] * (value.shape.rank - len(known)) + list(known), value.dtype)


def _bucket(size: Any, sizes: list[int]) -> Any:
    """Return the least of the sizes that holds `size`."""
    if isinstance(size, int):
        return sizes[bisect.bisect_left(sizes, size)]
    table = tf.constant(sizes)  # not tf.searchsorted, which takes ten times as long to trace
    return tf.gather(table, tf.reduce_sum(tf.cast(table < size, tf.int32)))


def _padded_rows(rows: Tensor, block_rows: Tensor, units: int) -> Tensor:
    """Return the number of rows to which a block is padded.

    A small batch is one block, always of the same size, so the smaller last batch of an epoch uses
    the program of the others.
    """
    few = rows_of_one_block(units)
    alone = tf.where(rows == 1, 1, few)
    return tf.where(rows <= few, alone, _bucket(block_rows, ROWS))


def _capacity(steps: Any, state: Any) -> Any:
    """Return the number of steps to pad to, given the number of elements of the block's state."""
    capacity = _bucket(steps, STEPS)
    if isinstance(capacity, int) and isinstance(state, int):
        return max(capacity, SMALL_CAPACITY) if state <= SMALL_BLOCK_STATE else capacity
    return tf.where(state <= SMALL_BLOCK_STATE, tf.maximum(capacity, SMALL_CAPACITY), capacity)


def _is_one_of_many(steps: int, alike: Any) -> bool:
    """Tell whether equal sequences had several other lengths before."""
    exact = _exact_lengths.setdefault(alike, [])
    if steps not in exact and len(exact) < EXACT_LENGTHS:
        exact.append(steps)
    return steps not in exact


# Where the graph goes --------------------------------------------------------------------------


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """Trace graphs without XLA functions, as stock TF Serving requires.

    This is not needed for `model.export` and `tf.saved_model.save`, which are recognised.
    """
    token = _portable.set(True)
    try:
        yield
    finally:
        _portable.reset(token)


def export_target() -> str | None:
    """Return the runtime of the export being traced: "tensorflow", "onnx" or "litert".

    None means no export. `model.export` and the TFLite converter trace before they save, and no
    public interface shows it: Keras passes the model a plain call inside a plain tf.function,
    without an argument, a scope or a hook on its layers, and TensorFlow's save context begins after
    the tracing. So the modules on the call stack are examined.
    """
    found = set()
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(("keras.src.export", "keras_gru.convert", "tf2onnx", "tensorflow.")):
            for exporter, runtime in _EXPORTERS.items():
                if module.startswith(exporter):
                    found.add(runtime)
        frame = frame.f_back
    if _portable.get() or save_context.in_save_context():
        found.add("tensorflow")
    # An exporter for another runtime calls TensorFlow's.
    for runtime in (*CONVERTED_RUNTIMES, "tensorflow"):
        if runtime in found:
            return runtime
    return None


def in_xla() -> bool:
    """Tell whether the graph being built is compiled by XLA as a whole."""
    graph = tf.compat.v1.get_default_graph()
    return not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(graph)


def _check_xla(inside: bool, target: str | None) -> None:
    if target is not None:
        raise RuntimeError(
            "path='xla' cannot be exported: stock TF Serving refuses XLA functions. Load the model "
            "with path='auto' for export."
        )
    if not inside and not _xla_works():
        raise RuntimeError("path='xla' cannot run: this TensorFlow cannot compile with XLA.")


@functools.cache
def _xla_works() -> bool:
    if not on_gpu():  # a compilation to find out would take .1 s
        return bool(tf.test.is_built_with_xla())
    with tf.init_scope():  # some plug-ins for GPUs have none
        try:
            tf.function(lambda x: x + 1.0, jit_compile=True)(tf.constant(1.0))
        except (tf.errors.OpError, ValueError):
            return False
    return True
