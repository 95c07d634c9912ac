"""Models made with plain TensorFlow to look at in a browser: large ones, and other answers."""

import json

import tensorflow as tf

TOPICS, SERIES, HORIZON = 40, 1000, 24
LEVELS = [0.1, 0.5, 0.9]
SEVERAL = ["billing", "login", "refund"]


def save_topics(base_path):
    """A text goes to one of 40 classes; `gates` says so after each word."""
    module = tf.Module()

    def scores(words):
        numbers = tf.cast(tf.strings.to_hash_bucket_fast(words, TOPICS), tf.float32)
        classes = tf.range(TOPICS, dtype=tf.float32)
        return tf.nn.softmax(-tf.abs(numbers[..., None] - classes) / 4)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        return {"scores": scores(text), "note": tf.strings.length(text)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def gates(text):
        words = tf.strings.split(text).to_tensor()
        gate = scores(words)[..., None, None, :6] * 6
        return {
            "tokens": words, "scores": scores(words),
            "update_gate": gate, "reset_gate": 1 - gate, "state": gate - 0.5,
        }  # fmt: skip

    signatures = {"serving_default": serve, "gates": gates}
    _save(module, base_path, signatures, {"classes": [f"topic {i}" for i in range(TOPICS)]})


def save_wide(base_path):
    """Each of 1,000 series stays where it is."""
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, None, SERIES], tf.float32, name="history")])
    def serve(history):
        last = tf.repeat(history[:, -1:], HORIZON, axis=1)
        return {"forecast": last, "quantiles": tf.stack([last - 1, last, last + 1], -1)}

    names = [f"series {i}" for i in range(SERIES)]
    card = {"columns": names, "forecast_columns": names, "levels": LEVELS, "lookback": 8}
    _save(module, base_path, {"serving_default": serve}, card)


def save_several(base_path):
    """Any number of labels: those whose name is in the text."""
    module = tf.Module()
    names = tf.constant(SEVERAL)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        found = [tf.strings.regex_full_match(text, f".*{name}.*") for name in SEVERAL]
        hit = tf.stack(found, 1)
        return {
            "labels": tf.where(hit, names, ""),
            "scores": tf.where(hit, 0.9, 0.1),
            "thresholds": tf.fill(tf.shape(hit), 0.4),
        }

    _save(module, base_path, {"serving_default": serve}, {"classes": SEVERAL})


def save_estimate(base_path):
    """A number with two intervals: the length of the text."""
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        value = tf.cast(tf.strings.length(text), tf.float32)
        return {"value": value, "quantiles": value[:, None] + [-2.0, -1.0, 1.0, 2.0]}

    _save(module, base_path, {"serving_default": serve}, {})


def _save(module, base_path, signatures, card):
    module.functions = list(signatures.values())
    path = base_path / "1"
    tf.saved_model.save(module, str(path), signatures=signatures)
    (path / "assets.extra").mkdir()
    (path / "assets.extra" / "model_card.json").write_text(json.dumps(card))
