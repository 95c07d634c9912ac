"""The layers of this package in ONNX; word ids are padded at the end."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from gru_serving.preprocessing.texts import PADDING, UNKNOWN
from gru_training.words.embedding import WordEmbedding
from gru_training.words.ngrams import NgramLogits, first_key
from keras_gru.convert.onnx_graph import END, FLOAT, INT64, OnnxGraph, Value, float32
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
    """Add a `WordEmbedding`.

    The pieces of each word are added up once here, rather than in every run.
    """
    ids = graph.add("Cast", values[0].name, to=INT64)
    name = graph.add("Gather", graph.constant(_trained(layer), "trained"), ids)
    if layer.fixed is not None:
        fixed = graph.add("Gather", graph.weight(layer.fixed), ids)
        name = graph.add("Concat", fixed, name, axis=-1)
    return [Value(name, 3, _mask(graph, ids))]


def add_ngram_logits(graph: OnnxGraph, layer: Any, values: Sequence[Value], _: Any) -> list[Value]:
    """Add `NgramLogits`: a table from keys to rows of weights, of which the last is zero."""
    padding, one = graph.constant(np.int64(PADDING)), graph.constant([1])
    zero, end = graph.constant([0]), graph.constant([END])
    ids = graph.add("Cast", values[0].name, to=INT64)
    found = graph.add("Concat", *_ngrams(graph, layer, ids), axis=1)
    count = graph.add("Shape", found, start=1, end=2)
    ordered, _ = graph.add("TopK", found, count, count=2, axis=1, largest=0)
    later = graph.add("Slice", ordered, one, end, one)
    earlier = graph.add("Slice", ordered, zero, graph.constant([-1]), one)
    repeated = graph.add("Where", graph.add("Equal", later, earlier), padding, later)
    first = graph.add("Slice", ordered, zero, one, one)
    each = graph.add("Concat", first, repeated, axis=1)
    total, length = _total(graph, layer, _rows(graph, layer, each))
    if length:
        total = graph.add("Div", total, length)
    return [Value(graph.add("Add", total, graph.weight(layer.bias)), 2)]


def add_ngram_shares(graph: OnnxGraph, layer: Any, ids: str) -> tuple[str, Callable[[str], str]]:
    """Add what `NgramLogits` answers to one text, and each word's share in it.

    An n-gram is shared by its words in equal parts, and by all places where it stands.

    Args:
        graph: Graph to add to.
        layer: The layer.
        ids: Word ids (1, T) int64.

    Returns:
        Logits (1, C), and a function that adds the shares (1, T) in the logits' sum weighted by
        (1, C).
    """
    grams = _ngrams(graph, layer, ids)
    keys = graph.add("Concat", *grams, axis=1)  # (1, N)
    same = graph.add("Equal", graph.add("Unsqueeze", keys, [2]), graph.add("Unsqueeze", keys, [1]))
    times = graph.add("ReduceSum", graph.add("Cast", same, to=FLOAT), [2], keepdims=1)
    rows = graph.add("Div", _rows(graph, layer, keys), times)
    total, length = _total(graph, layer, rows)
    if length:
        total = graph.add("Div", total, length)
    logits = graph.add("Add", total, graph.weight(layer.bias))
    words = graph.add("Shape", ids, start=1, end=2)

    def shares(weights: str) -> str:
        of_class = graph.add("Slice", rows, [0], [layer.classes], [2])
        worth = graph.add("MatMul", of_class, graph.add("Transpose", weights, perm=[1, 0]))
        worth = graph.add("Squeeze", worth, [2])  # (1, N)
        if length:
            worth = graph.add("Div", worth, length)
        sizes = graph.add("Concat", *(graph.add("Shape", g, start=1, end=2) for g in grams), axis=0)
        parts = graph.add("Split", worth, sizes, count=len(grams), axis=1)
        found = []
        for size, part in enumerate([parts] if len(grams) == 1 else parts, start=1):
            part = graph.add("Div", part, float32(size))
            for place in range(size):
                moved = graph.add("Pad", part, [0, place, 0, size - 1 - place])
                found.append(graph.add("Slice", moved, [0], words, [1]))
        return str(graph.add("Sum", *found))

    return logits, shares


def _ngrams(graph: OnnxGraph, layer: Any, ids: str) -> list[str]:
    """Add the keys of the n-grams of ids (B, T) int64, a tensor (B, T - n + 1) for each length n.

    Padding is at the end; n-grams with padding are 0.
    """
    size, padding = layer.vocabulary_size, graph.constant(np.int64(PADDING))
    zero, one, end = graph.constant([0]), graph.constant([1]), graph.constant([END])
    numbers, grams = ids, [ids]
    for length in range(2, layer.order + 1):
        last = graph.add("Slice", ids, graph.constant([length - 1]), end, one)
        before = graph.add("Slice", numbers, zero, graph.constant([-1]), one)
        numbers = graph.add("Mul", before, graph.constant(np.int64(size)))
        numbers = graph.add("Add", numbers, last)
        keyed = graph.add("Add", numbers, graph.constant(np.int64(first_key(size, length))))
        is_padding = graph.add("Equal", last, padding)
        grams.append(graph.add("Where", is_padding, padding, keyed))
    return grams


def _rows(graph: OnnxGraph, layer: Any, keys: str) -> str:
    """Add the weights of n-grams (B, N), (B, N, C), with the squares behind them if there are."""
    known = np.asarray(layer.keys, np.int64)
    place = graph.add(
        "LabelEncoder",
        keys,
        domain=_ML,
        keys_int64s=known.tolist(),
        values_int64s=list(range(len(known))),
        default_int64=len(known),
    )
    columns = [np.asarray(layer.values)]
    if layer.unit_length:
        columns.append(np.asarray(layer.squares)[:, np.newaxis])
    weights = np.pad(np.concatenate(columns, axis=1), [[0, 1], [0, 0]])
    return str(graph.add("Gather", graph.constant(float32(weights), "ngram_weights"), place))


def _total(graph: OnnxGraph, layer: Any, rows: str) -> tuple[str, str]:
    """Add the sums (B, C) of rows (B, N, C), and the lengths (B, 1) of the texts, empty for 1."""
    total = graph.add("ReduceSum", rows, graph.constant([1]), keepdims=0)
    if not layer.unit_length:
        return total, ""
    total, squares = graph.add("Split", total, graph.constant([layer.classes, 1]), count=2, axis=1)
    is_none = graph.add("Equal", squares, graph.constant(float32(0)))
    length = graph.add("Where", is_none, graph.constant(float32(1)), graph.add("Sqrt", squares))
    return total, length


def _not_equal(graph: OnnxGraph, operation: Any, values: Sequence[Value], arguments: Any) -> Value:
    """Return the mask of ids as Keras computes it: the remainder is the beginning of each row."""
    if values[0].rank != 2 or arguments.args[1] != PADDING:
        return OPERATIONS["NotEqual"](graph, operation, values, arguments)
    # The tensor's dtype is not used: Keras treats ids after a custom layer as float32.
    return Value(_mask(graph, graph.add("Cast", values[0].name, to=INT64)), 2)


def _mask(graph: OnnxGraph, ids: str) -> str:
    mask = str(graph.add("Not", graph.add("Equal", ids, graph.constant(np.int64(PADDING)))))
    graph.prefixes.add(mask)
    return mask


def _trained(layer: Any) -> Any:
    """Return the vectors of all words, (V, trained_size)."""
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
