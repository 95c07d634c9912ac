"""The page docs/reference/layer_options.md: the path of each option, read off real layers.

`python docs/sphinx/option_page.py docs/reference/layer_options.md` writes the page anew.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_gru.layer import GRU

OPTIONS: dict[str, dict[str, Any]] = {
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

HEAD = """# Execution path of each option

`GRU.path` says how a layer computes. `"fused"` computes the input projection in one matrix product
and uses hand-derived backpropagation through time. `"loop"` runs the cell step by step under
automatic differentiation.

`GRU.last_path` says how the latest call ran:

- `"xla"`: a fused sequence as XLA functions, in a graph.
- `"plain"`: a fused sequence as plain operations, in eager code, in exports and for a single step.
- `"cudnn"`: cuDNN, on a GPU, if cuDNN can compute the layer: no mask, `reset_after`, a bias, tanh
  and sigmoid, no recurrent dropout, zoneout or gates. The cuDNN path has not been run yet.

`GRU(path=...)` requires one of these paths, and raises an error if it is not possible.

Each row of the table adds one option to the defaults. A combination runs on `"loop"` if any of its
options does. A test builds every layer, runs it forward and backward, and compares this page.

| option | path | training step runs |
|---|---|---|
"""


def page() -> str:
    """Compose the page as Markdown; builds a layer for each row and trains it for one step."""
    rows = []
    for name, options in OPTIONS.items():
        call: dict[str, Any] = {k: options[k] for k in ("mask", "initial_state") if k in options}
        layer = GRU(4, **{k: v for k, v in options.items() if k not in call})
        trains = "yes" if _trains(layer, call) else "no"
        rows.append(f"| {name} | `{layer.path}` | {trains} |\n")
    return HEAD + "".join(rows)


def _trains(layer: GRU, call: Mapping[str, Any]) -> bool:
    x = tf.constant(np.random.default_rng(0).normal(size=(3, 5, 2)), tf.float32)
    given: dict[str, Any] = {}
    if "mask" in call:
        given["mask"] = np.array([[0, 1, 0, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
    if "initial_state" in call:
        given["initial_state"] = tf.ones((3, 4))
    with tf.GradientTape() as tape:
        results = tf.nest.flatten(layer(x, training=True, **given))
        loss = tf.add_n([tf.reduce_sum(tf.cast(r, tf.float32) ** 2) for r in results])
    gradients = tape.gradient(loss, layer.trainable_variables)
    return all(np.isfinite(g).all() and np.any(g) for g in gradients)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the page about the layer's options.")
    parser.add_argument("page", type=Path, help="Markdown file to write")
    parser.parse_args(arguments).page.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
