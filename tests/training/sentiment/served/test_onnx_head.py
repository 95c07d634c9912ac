"""Answers by graphs of ONNX, beside the TensorFlow functions that they are to equal."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from gru_training.sentiment.decision import Decision, Scale
from gru_training.sentiment.served.head import ClassHead, LabelsHead, NumberHead
from gru_training.sentiment.served.onnx import OUTPUTS, add_answers
from keras_gru.convert.onnx_graph import OnnxGraph

NAMES = ("praise", "Grüße", "bill", "x")
COSTS = ((0.0, -5.0, -1.0, -1.0), (-1.0, 0.0, -3.0, -1.0), (-1.0, -9.0, 0.0, -2.0), (-1.0,) * 4)
HEADS = {
    "class": ClassHead(NAMES, 1.3, Decision()),
    "thresholds": ClassHead(NAMES, 0.7, Decision(thresholds=(0.0, 0.9, 0.4, 0.95))),
    "none eligible": ClassHead(NAMES, 1.0, Decision(thresholds=(0.99,) * 4)),
    "costs": ClassHead(NAMES, 1.0, Decision(utilities=COSTS)),
    "both": ClassHead(NAMES, 1.0, Decision((0.1, 0.5, 0.2, 0.3), COSTS)),
    "labels": LabelsHead(NAMES, 1.6, Decision()),
    "thresholds of labels": LabelsHead(NAMES, 1.0, Decision(thresholds=(0.2, 0.9, 0.5, 0.01))),
    "number": NumberHead("days", Scale(3.0, 7.5, (-4.0, -1.0, 1.5, 6.0))),
}


def logits_of(head):
    rng = np.random.default_rng(2)
    count = len(head.names)
    drawn = rng.normal(0, 2, (500, count))
    alike = np.round(rng.normal(0, 1, (200, count)))  # equal scores: the first one counts
    return np.concatenate([drawn, alike, np.zeros((1, count))]).astype(np.float32)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_answers(head):
    graph = OnnxGraph()
    add_answers(graph, graph.input("logits", "float32", (None, len(head.names))), head)
    content = graph.model("answer").SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    logits = logits_of(head)
    found = dict(
        zip(
            (one.name for one in session.get_outputs()),
            session.run(None, {"logits": logits}),
            strict=True,
        )
    )
    wanted = {name: value.numpy() for name, value in head.answers(tf.constant(logits)).items()}
    assert wanted.keys() == set(OUTPUTS[head.kind])
    assert found.keys() == wanted.keys() | ({"classes"} if head.kind != "number" else set())
    for name, value in wanted.items():
        assert found[name].shape == value.shape, name
        if value.dtype == object:
            assert found[name].tolist() == np.vectorize(bytes.decode)(value).tolist(), name
        else:
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)
    if head.kind != "number":
        assert found["classes"].tolist() == [list(NAMES)] * len(logits)
