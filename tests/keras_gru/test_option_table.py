"""docs/layer_options.md: on which path each option runs, read off real layers.

`python -m tests.keras_gru.test_option_table` writes the page anew.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_gru import GRU

PAGE = Path(__file__).parents[2] / "docs" / "layer_options.md"

OPTIONS = {
    "defaults": {},
    "`reset_after=False`": {"reset_after": False},
    '`update_gate="replace"`': {"update_gate": "replace"},
    "`use_bias=False`": {"use_bias": False},
    "activations among sigmoid, hard_sigmoid, tanh, relu, linear": {
        "activation": "relu",
        "recurrent_activation": "hard_sigmoid",
    },
    "any other activation": {"activation": "softsign"},
    "`dropout`": {"dropout": 0.5},
    "`recurrent_dropout`": {"recurrent_dropout": 0.5},
    "`zoneout`": {"zoneout": 0.5},
    "`dropconnect`": {"dropconnect": 0.5},
    "`layer_norm=True`": {"layer_norm": True},
    "`learn_initial_state=True`": {"learn_initial_state": True},
    "`return_gates=True`": {"return_gates": True},
    "`return_sequences=True`": {"return_sequences": True},
    "`return_state=True`": {"return_state": True},
    "`go_backwards=True`": {"go_backwards": True},
    "`stateful=True`": {"stateful": True},
    "`zero_output_for_mask=True`": {"zero_output_for_mask": True},
    "`unroll=True`": {"unroll": True},
    "mask of any pattern": {"mask": True},
    "`initial_state`": {"initial_state": True},
    '`dtype="mixed_float16"`': {"dtype": "mixed_float16"},
}

HEADER = """# On which path each option runs

`GRU.path` says it of a layer: `"fused"` is the input projection in one matrix product and
hand-derived backpropagation through time, `"loop"` the cell step by step under automatic
differentiation. `GRU.last_path` says how the latest call ran: a fused sequence as XLA functions
(`"xla"`) in a graph, as plain operations (`"plain"`) in eager code, in exports and for a single
step, and on a GPU by cuDNN (`"cudnn"`) where that can compute it: no mask, `reset_after`, a bias,
tanh and sigmoid, no recurrent dropout, zoneout or gates. `GRU(path=...)` asks for one of them, and
is an error where it cannot be had. The cuDNN path was not run yet.
Each row is one option on top of the defaults; combinations run on `"loop"` if any of their options
does. A test builds every layer, runs it forward and backward, and compares this page.

| option | path | training step runs |
|---|---|---|
"""


def page():
    rows = []
    for name, options in OPTIONS.items():
        call = {k: options[k] for k in ("mask", "initial_state") if k in options}
        layer = GRU(4, **{k: v for k, v in options.items() if k not in call})
        rows.append(f"| {name} | `{layer.path}` | {_trains(layer, call)} |\n")
    return HEADER + "".join(rows)


def _trains(layer, call):
    x = tf.constant(np.random.default_rng(0).normal(size=(3, 5, 2)), tf.float32)
    kwargs = {}
    if "mask" in call:
        kwargs["mask"] = np.array([[0, 1, 0, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
    if "initial_state" in call:
        kwargs["initial_state"] = tf.ones((3, 4))
    with tf.GradientTape() as tape:
        results = tf.nest.flatten(layer(x, training=True, **kwargs))
        loss = tf.add_n([tf.reduce_sum(tf.cast(r, tf.float32) ** 2) for r in results])
    grads = tape.gradient(loss, layer.trainable_variables)
    return "yes" if all(np.isfinite(g).all() and np.any(g) for g in grads) else "no"


def test_page_is_what_the_layers_say():
    assert PAGE.read_text("utf-8") == page()
    assert "| no |" not in page()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
