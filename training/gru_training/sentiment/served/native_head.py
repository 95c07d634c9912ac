"""`gru_training.sentiment.served.head` in ONNX: from logits to answers."""

from __future__ import annotations

import numpy as np

from gru_training.classification.decision import HALF, Decision
from gru_training.sentiment.served.head import ClassHead, Head, LabelsHead, NumberHead
from keras_gru.convert.onnx_graph import BOOL, INT32, OnnxGraph, float32

OUTPUTS = {
    "class": ("label", "probability", "scores"),
    "labels": ("labels", "scores", "thresholds"),
    "number": ("value", "quantiles"),
}
"""Of the signature `serving_default`, by `Head.kind`."""


def add_scores(graph: OnnxGraph, logits: str, head: Head) -> str:
    """What `Head.scores` makes of logits (..., C)."""
    if isinstance(head, NumberHead):
        spread = graph.add("Mul", logits, graph.constant(float32(head.scale.deviation)))
        return str(graph.add("Add", spread, graph.constant(float32(head.scale.mean))))
    assert isinstance(head, ClassHead | LabelsHead)
    calm = graph.add("Div", logits, graph.constant(float32(head.temperature)))
    if isinstance(head, LabelsHead):
        return str(graph.add("Sigmoid", calm))
    return str(graph.add("Softmax", calm, axis=-1))


def add_answers(graph: OnnxGraph, logits: str, head: Head) -> None:
    """Outputs for logits (B, C): `Head.answers`, and `classes` for those of the Classify API."""
    scores = add_scores(graph, logits, head)
    if isinstance(head, NumberHead):
        value = graph.add("Squeeze", scores, graph.constant([1]))
        graph.output("value", value, "float32", (None,))
        bounds = graph.add("Add", scores, graph.constant(float32(head.scale.offsets)))
        graph.output("quantiles", bounds, "float32", (None, len(head.scale.offsets)))
        return
    shape = (None, len(head.names))
    names = graph.constant(np.array([*head.names, ""], object), "classes_in_order")
    graph.output("scores", scores, "float32", shape)
    places = graph.constant(np.arange(len(head.names)))
    every = graph.add("Expand", places, graph.add("Shape", scores))
    graph.output("classes", graph.add("Gather", names, every), "object", shape)
    if isinstance(head, LabelsHead):
        _add_labels(graph, scores, names, head)
        return
    assert isinstance(head, ClassHead)
    best = _best(graph, scores, head.decision)
    graph.output("label", graph.add("Gather", names, best), "object", (None,))
    last = graph.constant([1])
    of_best = graph.add("GatherElements", scores, graph.add("Unsqueeze", best, last), axis=1)
    graph.output("probability", graph.add("Squeeze", of_best, last), "float32", (None,))


def _best(graph: OnnxGraph, scores: str, decision: Decision) -> str:
    """The class numbers (B,) answered."""
    value = scores
    if decision.utilities:
        value = graph.add("MatMul", scores, graph.constant(float32(decision.utilities)))
    if decision.thresholds:
        least = graph.constant(float32(decision.thresholds))
        eligible = graph.add("GreaterOrEqual", scores, least)
        some = graph.add("ReduceMax", graph.add("Cast", eligible, to=INT32), axes=[1], keepdims=1)
        all_are = graph.add("Not", graph.add("Cast", some, to=BOOL))
        eligible = graph.add("Or", eligible, all_are)
        value = graph.add("Where", eligible, value, graph.constant(float32(-np.inf)))
    return str(graph.add("ArgMax", value, axis=-1, keepdims=0))


def _add_labels(graph: OnnxGraph, scores: str, names: str, head: LabelsHead) -> None:
    count = len(head.names)
    thresholds = head.decision.thresholds or (HALF,) * count
    least = graph.add("Expand", graph.constant(float32(thresholds)), graph.add("Shape", scores))
    graph.output("thresholds", least, "float32", (None, count))
    applies = graph.add("GreaterOrEqual", scores, least)
    ranked = graph.add("Where", applies, scores, graph.constant(float32(-1)))
    _, order = graph.add("TopK", ranked, graph.constant([count]), count=2, axis=1)
    there = graph.add("GatherElements", applies, order, axis=1)
    place = graph.add("Where", there, order, graph.constant(np.int64(count)))  # of an empty text
    graph.output("labels", graph.add("Gather", names, place), "object", (None, count))
