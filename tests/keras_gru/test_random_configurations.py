"""Configurations and inputs drawn at random: against keras.layers.GRU, and one path with the other.

`python -m tests.keras_gru.test_random_configurations FIRST LAST` runs more seeds by hand.
"""

import sys
import traceback

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU

SEEDS = range(16)
RUNS = ["eager", "graph", "unknown shape", "xla"]
PRECISIONS = {"float32": 3e-5, "mixed_float16": 0.01, "mixed_bfloat16": 0.08, "float16": 0.01}
HAND_DERIVED = ("sigmoid", "hard_sigmoid", "tanh", "relu", "linear")


def opaque(name):
    """The activation wrapped in a new function, which keeps the layer off the fused path."""
    activation = keras.activations.get(name)

    def same(a):
        return activation(a)

    return same


def draw_mask(rng, B, T):
    kind = rng.choice(["none", "any", "right", "left", "empty row", "empty", "full"])
    if kind == "none":
        return None
    mask = rng.random((B, T)) < 0.6
    lengths = rng.integers(0, T + 1, (B, 1))
    if kind == "right":
        mask = np.arange(T) < lengths
    elif kind == "left":
        mask = np.arange(T) >= T - lengths
    elif kind == "empty row":
        mask[rng.integers(B)] = False
    elif kind in ("empty", "full"):
        mask[:] = kind == "full"
    return mask.astype(rng.choice(["bool", "float32", "int32"]))


def draw(seed):
    """Options that both layers have, options of ours only, and arguments for the call."""
    rng = np.random.default_rng(seed)
    flip = lambda: bool(rng.random() < 0.5)  # noqa: E731
    B, T, D, U = (int(rng.integers(1, n)) for n in (5, 7, 4, 5))
    regularizer = keras.regularizers.L2(0.1) if flip() else None
    shared = {
        "units": U,
        "activation": str(rng.choice(["tanh", "relu", "linear", "sigmoid", "softsign"])),
        "recurrent_activation": str(rng.choice(["sigmoid", "hard_sigmoid", "tanh", "softplus"])),
        "use_bias": flip(),
        "reset_after": flip(),
        "go_backwards": flip(),
        "return_sequences": flip(),
        "return_state": flip(),
        "zero_output_for_mask": flip(),
        "unroll": bool(rng.random() < 0.2),
        "stateful": bool(rng.random() < 0.2),
        "kernel_regularizer": regularizer,
        "activity_regularizer": regularizer,
    }
    own = {
        "update_gate": str(rng.choice(["keep", "replace"])),
        "zoneout": float(rng.choice([0.0, 0.3])),
        "recurrent_dropout": float(rng.choice([0.0, 0.4])),
        "dropout": float(rng.choice([0.0, 0.4])),
        "dropconnect": float(rng.choice([0.0, 0.4])),
        "learn_initial_state": flip(),
        "layer_norm": bool(np.random.default_rng([seed, 1]).random() < 0.3),
        "seed": seed,
    }
    x = rng.normal(size=(B, T, D))
    call = {"mask": draw_mask(rng, B, T), "initial_state": rng.normal(size=(B, U))}
    if flip():
        call["initial_state"] = None
    return shared, own, x, call, str(rng.choice(RUNS, p=[0.7, 0.1, 0.1, 0.1])), rng


def weigh(layer, x, rng):
    layer.build(x.shape)
    layer.set_weights([0.7 * rng.normal(size=w.shape) for w in layer.get_weights()])


def outputs_and_gradients(layer, x, call, how, *, calls=1, outputs=None, **kwargs):
    """Two calls, as a stateful layer needs them; what comes out, and every gradient.

    Only so many outputs of each call count, where a number is given.
    """

    given = {"x": x, **{k: v for k, v in call.items() if v is not None}}
    given = {name: tf.constant(value) for name, value in given.items()}

    def run(given):
        sources = [given[name] for name in ("x", "initial_state") if name in given]
        rest = {name: given[name] for name in given if name != "x"}
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = []
            for _ in range(calls):
                results += tf.nest.flatten(layer(given["x"], **rest, **kwargs))[:outputs]
            wide = [tf.cast(r, tf.float64) for r in results]
            loss = tf.add_n([tf.reduce_sum(tf.sin(r + 0.3)) for r in wide])
            loss += tf.add_n([tf.cast(one, tf.float64) for one in [0, *layer.losses]])
        sources += [v.value for v in layer.trainable_variables]
        gradients = tape.gradient(loss, sources, unconnected_gradients="zero")
        return wide, [tf.convert_to_tensor(g) for g in gradients]

    if how == "unknown shape" and not layer.unroll and not layer.stateful:
        unknown = {"x": (None, None, x.shape[-1]), "mask": (None, None)}
        unknown["initial_state"] = (None, layer.units)
        run = tf.function(
            run, [{name: tf.TensorSpec(unknown[name], given[name].dtype) for name in given}]
        )
    elif how != "eager":
        run = tf.function(run, jit_compile=how == "xla" or None)
    return tf.nest.map_structure(lambda t: t.numpy(), run(given))


def assert_same(got, wanted, rtol=1e-8, atol=1e-10):
    for part, parts in zip(("output", "gradient"), zip(got, wanted, strict=True), strict=True):
        for index, (a, b) in enumerate(zip(*parts, strict=True)):
            assert a.shape == b.shape, (part, index, a.shape, b.shape)
            np.testing.assert_allclose(
                np.float64(a), b, rtol=rtol, atol=atol, err_msg=f"{part} {index}"
            )


def compare_with_keras(seed):
    shared, _, x, call, how, rng = draw(seed)
    ours = GRU(**shared, dtype="float64")
    keras_layer = keras.layers.GRU(**shared, use_cudnn=False, dtype="float64")
    weigh(ours, x, rng)
    keras_layer.build(x.shape)
    keras_layer.set_weights(ours.get_weights())
    assert (ours.path == "fused") == (
        not shared["unroll"]
        and {shared["activation"], shared["recurrent_activation"]} <= set(HAND_DERIVED)
    )
    calls = 2 if shared["stateful"] else 1
    assert_same(
        outputs_and_gradients(ours, x, call, how, calls=calls),
        outputs_and_gradients(keras_layer, x, call, "eager", calls=calls),
    )


def draw_for_fused(seed):
    shared, *rest = draw(seed)
    shared["activation"] = "tanh" if shared["activation"] == "softsign" else shared["activation"]
    shared["recurrent_activation"] = "sigmoid"
    shared["unroll"] = False
    return shared, *rest


def compare_paths(seed):
    shared, own, x, call, how, rng = draw_for_fused(seed)
    training = bool(seed % 2) and not own["zoneout"]  # each path draws its own zoneout
    fused = GRU(**shared, **own, dtype="float64")
    looped = GRU(**{**shared, "activation": opaque(shared["activation"])}, **own, dtype="float64")
    assert (fused.path, looped.path) == ("fused", "loop")
    weigh(fused, x, rng)
    looped.build(x.shape)
    looped.set_weights(fused.get_weights())
    for layer in (fused, looped):
        layer.reset_state()
    how = "graph" if how == "xla" and training else how
    assert_same(
        outputs_and_gradients(fused, x, call, how, training=training),
        outputs_and_gradients(looped, x, call, "eager", training=training),
    )


def compare_precisions(seed):
    """Every precision, with gates and without, and the loop in float64."""
    shared, own, x, call, how, rng = draw_for_fused(seed)
    shared["activity_regularizer"] = None  # gates count as activities, too
    precision = list(PRECISIONS)[seed % len(PRECISIONS)]
    fused = GRU(**shared, **own, dtype=precision, return_gates=bool(rng.integers(2)))
    looped = GRU(**shared, **own, dtype="float64", path="loop")
    weigh(looped, x, rng)
    fused.build(x.shape)
    fused.set_weights(looped.get_weights())
    for layer in (fused, looped):
        layer.reset_state()
    wanted = outputs_and_gradients(looped, x, call, "eager")
    got = outputs_and_gradients(fused, x, call, how, outputs=len(wanted[0]))
    scale = 1 + max(np.abs(part).max() for parts in wanted for part in parts)
    assert_same(got, wanted, rtol=0, atol=PRECISIONS[precision] * scale)


COMPARISONS = {
    "keras": compare_with_keras,
    "paths": compare_paths,
    "precisions": compare_precisions,
}


@pytest.mark.parametrize(
    "seed", [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS]
)
def test_equals_keras(seed):
    compare_with_keras(seed)


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", SEEDS)
def test_fused_equals_loop(seed):
    compare_paths(seed)


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", SEEDS)
def test_every_precision_equals_the_loop(seed):
    compare_precisions(seed)


if __name__ == "__main__":
    failures = 0
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        for name, compare in COMPARISONS.items():
            try:
                compare(seed)
            except Exception:
                failures += 1
                sys.stderr.write(f"seed {seed}, {name}: {draw(seed)[:2]}\n")
                traceback.print_exc(limit=3)
    sys.exit(f"{failures} failures" if failures else 0)
