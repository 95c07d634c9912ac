"""The layers of this folder in ONNX; word ids are padded at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from gru_serving.preprocessing.texts import PADDING, UNKNOWN
from gru_training.words.embedding import WordEmbedding
from gru_training.words.ngrams import NgramLogits, first_key
from keras_gru.convert.onnx_graph import INT64, OnnxGraph, Value, float32
from keras_gru.convert.onnx_layers import OPERATIONS

_ML = "ai.onnx.ml"


def add_keras_embedding(
    graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any
) -> list[Value]:
    """Add a `keras.layers.Embedding` with `mask_zero` to the graph."""
    ids = graph.add("Cast", values[0].name, to=INT64)
    name = graph.add("Gather", graph.weight(layer.embeddings), ids, name=layer.name)
    return [Value(name, 3, _mask(graph, ids))]


def add_word_embedding(
    graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any
) -> list[Value]:
    """`WordEmbedding`; the pieces of each word are added up once, here, not in every run."""
    ids = graph.add("Cast", values[0].name, to=INT64)
    parts = []
    if layer.fixed is not None:
        parts.append(graph.add("Gather", graph.weight(layer.fixed), ids))
    if layer.trained is not None:
        parts.append(graph.add("Gather", graph.constant(_trained(layer), "trained"), ids))
    name = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=-1)
    return [Value(name, 3, _mask(graph, ids))]


def add_ngram_logits(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """`NgramLogits`: a table from keys to rows of weights, of which the last is zero."""
    keys = np.asarray(layer.keys, np.int64)
    size = layer.vocabulary_size
    ids = graph.add("Cast", values[0].name, to=INT64)
    padding, one = graph.constant(np.int64(PADDING)), graph.constant([1])
    zero, end = graph.constant([0]), graph.constant([np.iinfo(np.int64).max])
    numbers, grams = ids, [ids]
    for length in range(2, layer.order + 1):
        # Padding is at the end: an n-gram with padding has it on the right.
        last = graph.add("Slice", ids, graph.constant([length - 1]), end, one)
        before = graph.add("Slice", numbers, zero, graph.constant([-1]), one)
        numbers = graph.add("Mul", before, graph.constant(np.int64(size)))
        numbers = graph.add("Add", numbers, last)
        keyed = graph.add("Add", numbers, graph.constant(np.int64(first_key(size, length))))
        is_padding = graph.add("Equal", last, padding)
        grams.append(graph.add("Where", is_padding, padding, keyed))
    found = graph.add("Concat", *grams, axis=1)
    count = graph.add("Shape", found, start=1, end=2)
    ordered, _ = graph.add("TopK", found, count, count=2, axis=1, largest=0)
    later = graph.add("Slice", ordered, one, end, one)
    earlier = graph.add("Slice", ordered, zero, graph.constant([-1]), one)
    repeated = graph.add("Where", graph.add("Equal", later, earlier), padding, later)
    first = graph.add("Slice", ordered, zero, one, one)
    each = graph.add("Concat", first, repeated, axis=1)
    place = graph.add(
        "LabelEncoder",
        each,
        domain=_ML,
        keys_int64s=keys.tolist(),
        values_int64s=list(range(len(keys))),
        default_int64=len(keys),
    )
    columns = [np.asarray(layer.values)]
    if layer.unit_length:
        columns.append(np.asarray(layer.squares)[:, np.newaxis])
    weights = np.pad(np.concatenate(columns, axis=1), [[0, 1], [0, 0]])
    rows = graph.add("Gather", graph.constant(float32(weights), "ngram_weights"), place)
    total = graph.add("ReduceSum", rows, one, keepdims=0)
    if layer.unit_length:
        sizes = graph.constant([layer.classes, 1])
        total, squares = graph.add("Split", total, sizes, count=2, axis=1)
        is_none = graph.add("Equal", squares, graph.constant(float32(0)))
        length = graph.add("Sqrt", squares)
        length = graph.add("Where", is_none, graph.constant(float32(1)), length)
        total = graph.add("Div", total, length)
    return [Value(graph.add("Add", total, graph.weight(layer.bias)), 2)]


def _not_equal(graph: OnnxGraph, operation: Any, values: Sequence[Value], arguments: Any) -> Value:
    """The mask of ids, as Keras computes it: what it leaves is the beginning of each row."""
    if values[0].rank != 2 or arguments.args[1] != PADDING:
        return OPERATIONS["NotEqual"](graph, operation, values, arguments)
    # Not of the tensor's dtype: Keras takes ids behind a layer of one's own for float32.
    return Value(_mask(graph, graph.add("Cast", values[0].name, to=INT64)), 2)


def _mask(graph: OnnxGraph, ids: str) -> str:
    mask = str(graph.add("Not", graph.add("Equal", ids, graph.constant(np.int64(PADDING)))))
    graph.prefixes.add(mask)
    return mask


def _trained(layer: Any) -> Any:
    """The vectors of all words, (V, trained_size)."""
    ids = np.arange(layer.vocabulary_size)
    table = float32(layer.trained)[np.where(ids < layer.trained_words, ids, UNKNOWN)]
    if layer.pieces is None:
        return table
    pieces, vectors = np.asarray(layer.pieces), float32(layer.piece_vectors)
    there = (pieces != 0).astype("float32")[..., np.newaxis]
    summed = np.zeros_like(table)
    for place in range(pieces.shape[1]):
        summed += vectors[pieces[:, place]] * there[:, place]
    return table + summed / np.sqrt(np.maximum(there.sum(axis=1), 1))


WRITERS = {
    keras.layers.Embedding: add_keras_embedding,
    NgramLogits: add_ngram_logits,
    WordEmbedding: add_word_embedding,
}
"""Writers by kind of layer, beside `keras_gru.convert.onnx_layers.WRITERS`."""

MASKS = {"NotEqual": _not_equal}
"""Writers by operation name, in place of the one in `gru_training.onnx.operations`."""
