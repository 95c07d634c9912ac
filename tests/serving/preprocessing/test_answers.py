"""Logits to answers: without TensorFlow as by its operations, and as a report decides."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.answers import FindLabel, HidePadding, NameLabel, RepeatNames
from gru_serving.preprocessing.description import Files, Step
from gru_training.sentiment.decision import Decision, Scale
from gru_training.sentiment.served.head import RAW_SCORES, ClassHead, LabelsHead, NumberHead

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
drawn = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 40), st.just(4)),
    elements=st.one_of(
        st.sampled_from([np.float32(value) for value in (-1, 0, 1, 2)]),  # equal ones
        st.floats(-60, 60, width=32),
    ),
)


def kept(steps):
    """The steps as a server reads them."""
    return [Step.from_json(step.to_json(), Files(None)) for step in steps]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(logits=drawn, name=st.sampled_from([*HEADS]))
def test_answers(logits, name):
    head = HEADS[name]
    logits = logits[:, : len(head.names)]
    steps = kept([head.calibration, head.choice, RepeatNames("scores", head.names)])
    found, graph = {RAW_SCORES: logits}, {RAW_SCORES: tf.constant(logits)}
    for number, step in enumerate(steps[: 2 if head.kind == "number" else 3]):
        step.numpy(found)
        step.graph(graph)
        if not number:  # else the last digit decided between classes that are as likely
            np.testing.assert_allclose(found["scores"], graph["scores"], rtol=1e-6, atol=1e-6)
            graph["scores"] = tf.constant(found["scores"])
    assert set(head.outputs) < found.keys() == graph.keys()
    for output, value in graph.items():
        value = value.numpy()
        assert found[output].shape == value.shape, output
        if value.dtype == object:
            assert found[output].tolist() == value.tolist(), output
        else:
            assert found[output].dtype == value.dtype, output
            np.testing.assert_allclose(found[output], value, rtol=1e-6, atol=1e-6, err_msg=output)


@pytest.mark.parametrize("head", [HEADS["class"], HEADS["both"]], ids=["class", "both"])
def test_the_class_answered_has_the_greatest_expected_utility(head):
    logits = np.random.default_rng(2).normal(0, 2, (300, 4)).astype(np.float32)
    answers = head.answers_of(logits)
    scores, step = answers["scores"].astype(np.float64), head.choice
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)
    for row, label in zip(scores, answers["label"], strict=True):
        worth = row @ np.array(step.utilities) if step.utilities else row
        eligible = [k for k in range(4) if not step.thresholds or row[k] >= step.thresholds[k]]
        best = max(eligible or range(4), key=lambda k: worth[k])
        assert label.decode() == NAMES[best]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    given_names=st.lists(st.sampled_from(["", *NAMES, "Grusse", "bil", "x "]), max_size=6),
    names=st.sampled_from([NAMES, (*NAMES, *"abcdefg")]),
)
def test_labels_are_found_and_named(given_names, names):
    find, name = kept([FindLabel("label", "place", names), NameLabel("place", "again", names)])
    asked = np.array([text.encode() for text in given_names], object)
    unknown = [text for text in given_names if text and text not in names]
    found, graph = {"label": asked}, {"label": tf.constant(given_names, tf.string)}
    if unknown:
        more = ", ..." if len(names) > 8 else ""
        said = f"one of {', '.join(names[:8])}{more}; got {unknown[0]}"
        with pytest.raises(InvalidArgument, match=re.escape(f"{said}]")):
            find.numpy(found)
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"got {unknown[0]}"):
            find.graph(graph)
        return
    places = [names.index(text) if text else -1 for text in given_names]
    for values, do in ((found, "numpy"), (graph, "graph")):
        getattr(find, do)(values)
        assert np.asarray(values["place"]).dtype == np.int64
        assert np.asarray(values["place"]).tolist() == places
        values["place"] = values["place"] * 0 + 1
        getattr(name, do)(values)
        assert np.asarray(values["again"]).tolist() == [names[1].encode()] * len(places)


def test_padding_is_hidden():
    scores = np.random.default_rng(1).random((2, 3, 4)).astype(np.float32)
    ids = np.array([[2, 3, 0], [5, 0, 0]], np.int32)
    found = {"scores": scores, "ids": ids}
    graph = {name: tf.constant(value) for name, value in found.items()}
    (step,) = kept([HidePadding("scores", "ids")])
    step.numpy(found)
    step.graph(graph)
    np.testing.assert_array_equal(found["scores"], graph["scores"])
    assert (found["scores"] == 0).all(axis=-1).tolist() == (ids == 0).tolist()
