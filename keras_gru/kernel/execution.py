"""How a fused sequence runs: compiled by XLA or not, and on how many blocks of rows.

The rule, in this order:

1. In a function that XLA compiles as a whole (`jit_compile=True`): inline, in one block.
2. In eager code, in a graph traced for export, for a single step and where XLA does not work: plain
   operations. In a graph, a large batch is cut into two blocks of rows, which run side by side;
   an inference in an export is one loop, whatever the rows (`exported_loop`), in a function that
   all layers and signatures of a size share.
3. In a graph traced for ONNX or TensorFlow Lite ("foreign"): plain operations, one step per
   iteration of one loop (`foreign_loop`), which is what converters can read.
4. In any other graph: each block of rows in an XLA function of its own ("nested"), one per core.

Stock TF Serving refuses SavedModels that hold XLA functions; hence the second point.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

import tensorflow as tf

# Only these private modules tell that a function is traced for XLA, or for a SavedModel.
from tensorflow.python.ops import control_flow_util
from tensorflow.python.saved_model import save_context

Tensor = Any

# What the rule was tuned to, on two cores with AVX-512. Shapes are B,T,D,U; "recorded" says that a
# figure was kept. Where none was, the threshold stands on runs of the main grid of
# docs/notes/layer_performance.md, which has the figures of the rule as a whole, and of a grid that
# it was not tuned on.

# Below that much work, a second block of rows costs more than it saves: its launch. Work is
# B·T·U·(U + ELEMENTWISE): the recurrent products, and the rest as so many more columns. Recorded,
# one block and two, in ms: 32,100,64,128 (4.3 times that work) 3.1 and 2.1 in an inference, 9.5 and
# 5.8 to 6.8 in training; 64,200,128,256 29 and 23, 100 and 69 to 76; a launch .1. Neither the
# threshold nor ELEMENTWISE was measured on its own.
SMALL_WORK = 1 << 24
ELEMENTWISE = 50
# Where the number of rows is unknown, batches of up to that many are one block, if they are so
# little work. Not measured: with more rows, padding costs more than a program saves.
MOST_FEW_ROWS = 16
# With up to that many rows of at least that many units, the time goes into reading the weights, and
# each block would read them. No figures recorded.
FEW_ROWS = 4
MANY_UNITS = 400
# Steps of a sequence whose length is not known. An assumption, not a measurement.
TYPICAL_STEPS = 100
# Without XLA a block costs at every step. Below that many elements of the state, a second one costs
# more than it saves. Recorded, an inference in ms with one and two blocks: 32,100,64,128 (2¹² of
# them) 4.05 and 4.23; 256,24,7,64 (2¹⁴) 2.47 and 2.55; 64,200,128,256 (2¹⁴) 36.1 and 32.6.
SMALL_PLAIN_STATE = 1 << 12
# The same of an inference in an export, which chooses anew for every request.
SMALL_EXPORTED_STATE = 1 << 12
# From that many units per feature on, XLA projects the inputs faster in the loop than before it,
# since the result is much larger than its inputs. No figures recorded.
UNITS_PER_FEATURE = 8
# So it does up to that many features where the state has more elements than a small one: writing
# and reading the result takes longer than many small products. Recorded: 1,100,64,128 takes .43 ms
# for .55 in an inference if projected before the loop; 64,200,128,256 gains in the loop.
FEW_FEATURES = 1 << 7
SMALL_STATE = 1 << 11
# Up to that many elements of the state times units, a step that writes its gates down takes XLA
# longer than to compute them again, those of all steps in one large product. Recorded above it:
# at 32 rows of 128 units writing takes 8 µs a step, and a product of that step alone 16.
RECALLED = 1 << 15
# Steps per iteration of a plain loop, whose own operations cost as much as a small step's. A power
# of two. Recorded at 1, 2, 4 and 8, of one masked row of 50 steps and 64 units: .67, .59, .55 and
# .49 ms.
UNROLL = 8
# The same of an inference in an export, where every node delays the first answer. Recorded at 1, 2,
# 4 and 8 with the same request, over Keras' layer: .58, .47, .44 and .42 of its time; loading and
# the first answer in a session 1.3, 1.0, 1.1 and 1.4 times as long (`benchmarks.first_answer`), all
# with the inputs projected before the loop.
EXPORT_UNROLL = 4
# The same where XLA projects the inputs in the loop and keeps nothing for a backward pass.
# Recorded: 2 is best or equal nearly everywhere, 4 is equal, 8 takes 2 to 4 times as long to
# compile.
PROJECTING_UNROLL = 2
# Blocks of rows of a plain graph: an export may move to any machine. Recorded: four on two cores
# are slower than two.
PLAIN_BLOCKS = 2

# Modules that trace a model for a file: for a runtime other than TensorFlow's, and for any.
_TFLITE_EXPORTERS = ("keras.src.export.litert", "keras_gru.convert.tflite", "tensorflow.lite")
_FOREIGN_EXPORTERS = ("keras.src.export.onnx", "tf2onnx", *_TFLITE_EXPORTERS)
_EXPORTERS = ("keras.src.export", *_FOREIGN_EXPORTERS)

_portable: ContextVar[bool] = ContextVar("keras_gru_portable", default=False)


class Plan(NamedTuple):
    """How to run a sequence.

    Attributes:
        path: `"xla"` or `"plain"`.
        nested: Whether each block of rows is a call of a function, compiled on the path `"xla"`.
        blocks: Number of blocks of rows.
        unroll: Steps per iteration of the loop.
        project_in_loop: Whether the inputs are projected step by step.
        recall: Whether the backward pass computes the gates anew, those of all steps at once,
            instead of reading what the forward pass wrote down step by step.
        exported: Whether the graph is for a SavedModel.
        foreign: Whether another runtime than TensorFlow's will read it.
    """

    path: str
    nested: bool
    blocks: int
    unroll: int
    project_in_loop: bool
    recall: bool
    exported: bool
    foreign: bool

    @property
    def compiles_blocks(self) -> bool:
        """Whether XLA compiles each block of rows on its own."""
        return self.nested and self.path == "xla"

    def for_small_state(self) -> Plan:
        """The same for a batch too small to be worth cutting."""
        return self._replace(blocks=1, project_in_loop=False)

    def for_inference(self) -> Plan:
        """The same for a forward pass that no backward pass follows."""
        if self.path == "xla" and self.project_in_loop:
            return self._replace(unroll=PROJECTING_UNROLL)
        return self

    def inline(self) -> Plan:
        """The same without functions, for derivatives of derivatives."""
        return self._replace(nested=False, unroll=1)


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """Trace graphs without XLA functions, as stock TF Serving wants them.

    Not needed around `model.export` and `tf.saved_model.save`, which are recognised.
    """
    token = _portable.set(True)
    try:
        yield
    finally:
        _portable.reset(token)


def plan(path: str, rows: int | None, steps: int | None, features: int, units: int) -> Plan:
    """Choose how to run a sequence.

    Args:
        path: `"auto"` or `"fused"` for the rule of this module, or the path to take.
        rows: B, or None if unknown.
        steps: T, or None if unknown.
        features: D.
        units: U.

    Raises:
        RuntimeError: `path` is `"xla"` where XLA cannot be used.
    """
    inside, exported, eager = in_xla(), exporting(), tf.executing_eagerly()
    if path == "xla":
        _check_xla(inside, exported)
    avoided = path == "plain" or steps == 1 or eager or exported
    wanted = path == "xla" or not avoided
    compiles = wanted and not inside and _xla_works()
    compiled = inside or compiles
    large = steps != 1 and (rows is None or _is_large(rows, steps, units, compiled))
    in_loop = large and (not compiled or _projects_in_loop(rows, features, units))
    parallel = compiles or not (inside or eager)
    blocks = min(cores() if compiles else PLAIN_BLOCKS, rows or sys.maxsize)
    if exported_by(_FOREIGN_EXPORTERS) and steps != 1 and not (compiled or eager):
        return Plan("plain", False, 1, 1, False, False, exported=True, foreign=True)
    return Plan(
        path="xla" if compiled else "plain",
        nested=compiles or (exported and steps != 1 and not (inside or eager)),
        blocks=blocks if parallel and large and not on_gpu() else 1,
        unroll=1 if compiled or eager or steps == 1 else UNROLL,
        project_in_loop=in_loop,
        recall=compiled and not in_loop and rows is not None and _is_recalled(rows, units),
        exported=exported,
        foreign=False,
    )


def exported_blocks(rows: Any, units: int) -> Any:
    """Blocks of rows of an inference in an export; an int if the number of rows is one."""
    if isinstance(rows, int):
        return PLAIN_BLOCKS if rows > 1 and rows * units >= SMALL_EXPORTED_STATE else 1
    large = tf.logical_and(rows > 1, rows * units >= SMALL_EXPORTED_STATE)
    return tf.where(large, PLAIN_BLOCKS, 1)


def _is_large(rows: int, steps: int | None, units: int, compiled: bool) -> bool:
    """Whether a batch is worth cutting into blocks of rows."""
    if not compiled:
        return rows * units >= SMALL_PLAIN_STATE
    if rows <= FEW_ROWS and units >= MANY_UNITS:
        return False
    return rows * (steps or TYPICAL_STEPS) * units * (units + ELEMENTWISE) >= SMALL_WORK


def rows_of_one_block(units: int) -> int:
    """Rows up to which a batch of an unknown number of them is one block; a power of two."""
    rows = SMALL_WORK // (TYPICAL_STEPS * units * (units + ELEMENTWISE))
    return 1 << (min(max(rows, 1), MOST_FEW_ROWS).bit_length() - 1)


def _projects_in_loop(rows: int | None, features: int, units: int) -> bool:
    """Whether XLA projects the inputs of a large batch faster step by step."""
    if units >= UNITS_PER_FEATURE * features:
        return True
    small = rows is not None and (rows * units <= SMALL_STATE or _is_recalled(rows, units))
    return not small and features <= FEW_FEATURES


def _is_recalled(rows: int, units: int) -> bool:
    """Whether XLA computes the gates anew faster than it writes them down."""
    return rows * units**2 <= RECALLED


def cores() -> int:
    """Cores that this process may use, or the intra-op threads that TensorFlow is held to."""
    allowed = tf.config.threading.get_intra_op_parallelism_threads()
    if hasattr(os, "sched_getaffinity"):
        return allowed or len(os.sched_getaffinity(0))
    return allowed or os.cpu_count() or 1


@functools.cache
def on_gpu() -> bool:
    """Whether TensorFlow sees a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))


def _check_xla(inside: bool, exported: bool) -> None:
    if exported:
        raise RuntimeError(
            "path='xla' cannot be exported: stock TF Serving refuses XLA functions. Load the model "
            "with path='auto' for export."
        )
    if not inside and not _xla_works():
        raise RuntimeError("path='xla' cannot run: this TensorFlow cannot compile with XLA.")


def in_xla() -> bool:
    """Whether the graph being built is compiled by XLA as a whole."""
    graph = tf.compat.v1.get_default_graph()
    return not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(graph)


def exporting() -> bool:
    """Whether the graph being built is for a file."""
    return _portable.get() or save_context.in_save_context() or exported_by(_EXPORTERS)


def exporting_tflite() -> bool:
    """Whether the graph being built is for TensorFlow Lite."""
    return exported_by(_TFLITE_EXPORTERS)


def exported_by(exporters: tuple[str, ...]) -> bool:
    """Whether a module of one of these names, or inside one, is tracing the graph."""
    # `model.export` and the TFLite converter trace before they save, and nothing public tells that
    # they do: Keras hands the model a plain call inside a plain tf.function, without an argument, a
    # scope or a hook on its layers, and TensorFlow's save context begins after the tracing.
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(exporters):
            return True
        frame = frame.f_back
    return False


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
