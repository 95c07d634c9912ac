"""The layer compared with keras.layers.GRU with the same weights, and its own contract."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru
from keras_gru import GRU, GRUCell
from keras_gru.variants import MGUCell
from serving.engine.portability import portability_faults
from tests import oracle

MASK = np.array([[0, 0, 1, 1, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]], bool)


def twins(keras_class=keras.layers.GRU, our_class=GRU, units=5, features=4, **options):
    """A Keras layer and ours with the same asymmetric random weights."""
    theirs = keras_class(units, **options, **({"use_cudnn": False} if our_class is GRU else {}))
    ours = our_class(units, **options)
    rng = np.random.default_rng(0)
    for layer in (theirs, ours):
        layer.build((3, 6, features) if our_class is GRU else (3, features))
    weights = [rng.normal(size=w.shape).astype("float32") for w in theirs.get_weights()]
    theirs.set_weights(weights)
    ours.set_weights(weights)
    return theirs, ours


def inputs(units=5, features=4):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 6, features)).astype("float32")
    return tf.constant(x), tf.constant(rng.normal(size=(3, units)).astype("float32"))


def outputs_and_gradients(layer, x, h0, mask):
    with tf.GradientTape() as tape:
        tape.watch([x, h0])
        results = layer(x, initial_state=h0, mask=mask)
        results = list(results) if isinstance(results, list | tuple) else [results]
        weigh = [np.random.default_rng(i).normal(size=r.shape) for i, r in enumerate(results)]
        loss = tf.add_n(
            [tf.reduce_sum(r * tf.cast(w, r.dtype)) for r, w in zip(results, weigh, strict=True)]
        )
    return results, tape.gradient(loss, [x, h0, *layer.trainable_variables])


OPTIONS = [
    {"reset_after": reset_after, "go_backwards": go_backwards, **returns}
    for reset_after, go_backwards, returns in itertools.product(
        (True, False),
        (False, True),
        (
            {},
            {"return_sequences": True},
            {"return_sequences": True, "return_state": True},
            {"return_sequences": True, "zero_output_for_mask": True},
            {"return_state": True, "zero_output_for_mask": True, "use_bias": False},
        ),
    )
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_keras_with_the_same_weights(options, masked):
    theirs, ours = twins(**options)
    assert ours.path == "fused"
    mask = MASK if masked else None
    for actual, wanted in zip(
        outputs_and_gradients(ours, *inputs(), mask),
        outputs_and_gradients(theirs, *inputs(), mask),
        strict=True,
    ):
        for a, b in zip(actual, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("options", [{"unroll": True}, {"activation": "softsign"}], ids=str)
def test_loop_path_equals_keras(options):
    theirs, ours = twins(return_sequences=True, return_state=True, **options)
    assert ours.path == "loop"
    for actual, wanted in zip(
        outputs_and_gradients(ours, *inputs(), MASK),
        outputs_and_gradients(theirs, *inputs(), MASK),
        strict=True,
    ):
        for a, b in zip(actual, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("block", [0, 1], ids=["update gate", "swapped gates"])
def test_comparison_with_keras_sees_a_wrong_gate(block):
    """Negative control: changing the weights of one gate must show."""
    theirs, ours = twins()
    kernel, *rest = ours.get_weights()
    units = ours.units
    if block == 0:
        kernel[:, :units] *= -1
    else:
        kernel = kernel[:, [*range(units, 2 * units), *range(units), *range(2 * units, 3 * units)]]
    ours.set_weights([kernel, *rest])
    x, h0 = inputs()
    assert np.max(np.abs(ours(x, initial_state=h0) - theirs(x, initial_state=h0))) > 0.05


@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("path", ["fused", "loop"])
def test_replace_equals_keep_with_the_update_gate_negated(reset_after, path):
    options = {"reset_after": reset_after, "return_sequences": True, "unroll": path == "loop"}
    keep = GRU(5, **options)
    replace = GRU(5, update_gate="replace", **options)
    keep.build((3, 6, 4))
    replace.build((3, 6, 4))
    rng = np.random.default_rng(2)
    weights = [rng.normal(size=w.shape) for w in keep.get_weights()]
    keep.set_weights(weights)
    for w in weights:
        w[..., :5] *= -1
    replace.set_weights(weights)
    x, h0 = inputs()
    assert keep.path == replace.path == path
    np.testing.assert_allclose(
        keep(x, initial_state=h0), replace(x, initial_state=h0), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("update_gate", ["keep", "replace"])
def test_masked_outputs_equal_oracle(reset_after, update_gate):
    layer = GRU(
        5,
        reset_after=reset_after,
        update_gate=update_gate,
        return_sequences=True,
        return_state=True,
        dtype="float64",
        bias_initializer=keras.initializers.RandomNormal(seed=1),
    )
    x, h0 = (tf.cast(v, tf.float64) for v in inputs())
    outputs, final = layer(x, initial_state=h0, mask=MASK)
    for i in range(3):
        states, _ = oracle.forward(
            x[i].numpy(),
            h0[i].numpy(),
            *layer.get_weights(),
            reset_after=reset_after,
            update_gate=update_gate,
            mask=MASK[i],
        )
        np.testing.assert_allclose(outputs[i], oracle.shown(states, MASK[i]), atol=1e-12)
        np.testing.assert_allclose(final[i], states[-1], atol=1e-12)


def test_cell_equals_keras_cell():
    for reset_after, use_bias in itertools.product((True, False), repeat=2):
        theirs, ours = twins(
            keras.layers.GRUCell, GRUCell, reset_after=reset_after, use_bias=use_bias
        )
        x, h0 = inputs()
        for states in (h0, [h0], (h0,)):
            wanted, wanted_states = theirs(x[:, 0], states)
            actual, actual_states = ours(x[:, 0], states)
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)
            assert isinstance(actual_states, list) == isinstance(wanted_states, list)


@pytest.mark.parametrize("rows", [1, 3, None, 700], ids=lambda rows: f"{rows} rows")
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("update_gate", ["keep", "replace"])
@pytest.mark.parametrize("reset_after", [True, False])
def test_cell_equals_the_oracle_however_many_rows(reset_after, update_gate, use_bias, rows):
    """Small states compute their products together, large and unknown ones gate by gate."""
    rng = np.random.default_rng(5)
    options = {"reset_after": reset_after, "update_gate": update_gate}
    cell = GRUCell(5, use_bias=use_bias, dtype="float64", **options)
    cell.build((rows, 4))
    cell.set_weights([rng.normal(size=weight.shape) for weight in cell.get_weights()])
    count = rows or 3
    x, h0, upstream = (rng.normal(size=(count, size)) for size in (4, 5, 5))

    @tf.function(input_signature=[tf.TensorSpec((rows, size), tf.float64) for size in (4, 5, 5)])
    def run(x, h, upstream):
        with tf.GradientTape() as tape:
            tape.watch((x, h))
            h_new, _ = cell(x, [h])
        return h_new, tape.gradient(h_new, (x, h, *cell.trainable_weights), upstream)

    weights = (*cell.get_weights(), None)[:3]
    expected, grads = [], []
    for i in range(count):
        states, cache = oracle.forward(x[i : i + 1], h0[i], *weights, **options)
        expected.append(states[0])
        grads.append(
            oracle.backward(
                np.zeros((1, 5)), upstream[i], cache, x[i : i + 1], *weights[:2], **options
            )
        )
    h_new, (d_x, d_h, *d_weights) = run(x, h0, upstream)
    np.testing.assert_allclose(h_new, expected, atol=1e-12)
    np.testing.assert_allclose(d_x, [row[0][0] for row in grads], atol=1e-11)
    np.testing.assert_allclose(d_h, [row[1] for row in grads], atol=1e-11)
    for i, found in enumerate(d_weights):
        np.testing.assert_allclose(found, sum(row[2 + i] for row in grads), atol=1e-9)


def test_cell_takes_states_of_unknown_size():
    cell = GRUCell(5)
    x, h0 = inputs()
    run = tf.function(
        lambda x, h: cell(x, h)[0],
        input_signature=[tf.TensorSpec(x[:, 0].shape), tf.TensorSpec((3, None))],
    )
    np.testing.assert_allclose(run(x[:, 0], h0), cell(x[:, 0], h0)[0], rtol=1e-5, atol=1e-6)


def test_cell_in_keras_rnn_equals_the_layer():
    layer = GRU(5, return_sequences=True)
    rnn = keras.layers.RNN(GRUCell(5), return_sequences=True)
    x, _ = inputs()
    layer.build(x.shape)
    rnn.build(x.shape)
    rnn.set_weights(layer.get_weights())
    np.testing.assert_allclose(rnn(x, mask=MASK), layer(x, mask=MASK), rtol=1e-5, atol=1e-6)


FULL_CONFIG = {
    "units": 3,
    "activation": "relu",
    "recurrent_activation": "hard_sigmoid",
    "use_bias": False,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "glorot_normal",
    "kernel_regularizer": "l2",
    "recurrent_constraint": "max_norm",
    "activity_regularizer": "l1",
    "dropout": 0.25,
    "recurrent_dropout": 0.5,
    "seed": 7,
    "return_sequences": True,
    "return_state": True,
    "go_backwards": True,
    "stateful": True,
    "unroll": True,
    "reset_after": False,
    "zero_output_for_mask": True,
    "use_cudnn": False,
    "update_gate": "replace",
    "implementation": 1,
    "name": "mine",
}


def test_config_round_trips_every_argument():
    layer = GRU(**FULL_CONFIG)
    config = layer.get_config()
    again = GRU.from_config(config)
    assert again.get_config() == config
    for key, value in FULL_CONFIG.items():
        if isinstance(value, int | float | bool | str) and isinstance(
            getattr(again, key), int | float | bool | str
        ):
            assert getattr(again, key) == value, key
    revived = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert isinstance(revived, GRU)
    assert revived.get_config() == config


def of_each_weight():
    """Initializers, regularizers and constraints, all different from each other."""
    return {
        f"{weight}_{role}": make(0.1 * (i + 1))
        for i, weight in enumerate(("kernel", "recurrent", "bias"))
        for role, make in (
            ("initializer", keras.initializers.Constant),
            ("regularizer", keras.regularizers.L1),
            ("constraint", keras.constraints.MaxNorm),
        )
    }


@pytest.mark.parametrize(
    ("keras_class", "our_class"),
    [(keras.layers.GRU, GRU), (keras.layers.GRUCell, GRUCell)],
    ids=["GRU", "GRUCell"],
)
def test_what_is_asked_for_each_weight_reaches_it_as_in_keras(keras_class, our_class):
    theirs = keras_class(4, **of_each_weight())
    ours = our_class(4, **of_each_weight())
    again = our_class.from_config(ours.get_config())
    for layer in (theirs, ours, again):
        layer.build((2, 3, 5) if our_class is GRU else (2, 5))
    for layer in (ours, again):
        for name in of_each_weight():
            wanted = keras.saving.serialize_keras_object(getattr(theirs, name))
            assert keras.saving.serialize_keras_object(getattr(layer, name)) == wanted, name
            assert layer.get_config()[name] == theirs.get_config()[name], name
        np.testing.assert_allclose(layer.losses, theirs.losses, rtol=1e-6)
        for weight, theirs_weight in zip(layer.weights[:3], theirs.weights[:3], strict=True):
            assert weight.name == theirs_weight.name
            np.testing.assert_array_equal(weight, theirs_weight)
            assert weight.constraint.max_value == theirs_weight.constraint.max_value


def test_saved_model_file_keeps_values(tmp_path):
    model = keras.Sequential(
        [
            keras.layers.Input((None, 4)),
            keras.layers.Bidirectional(GRU(5, return_sequences=True, update_gate="replace")),
            keras.layers.RNN(GRUCell(3, reset_after=False)),
        ]
    )
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    x, _ = inputs()
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(model(x), loaded(x))
    assert isinstance(loaded.layers[0].forward_layer, GRU)


@pytest.mark.parametrize("jit_compile", ["auto", False, True])
def test_fit_learns(jit_compile):
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(256, 8, 3)).astype("float32")
    y = (x[:, 0, 0] > x[:, -1, 1]).astype("float32")
    model = keras.Sequential([GRU(16, dropout=0.1), keras.layers.Dense(1)])
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.BinaryCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    # Keras warns if a layer keeps the model from being compiled as a whole.
    assert model.jit_compile == (jit_compile is True)
    losses = model.fit(x, y, batch_size=32, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_unrolled_layer_converts_to_tensorflow_lite(tmp_path):
    model = keras.Sequential([keras.Input((6, 3)), GRU(4, unroll=True, update_gate="replace")])
    model.export(tmp_path, verbose=False)
    converted = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    runner = tf.lite.Interpreter(model_content=converted).get_signature_runner()
    (name,) = runner.get_input_details()
    x = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
    (answer,) = runner(**{name: x}).values()
    np.testing.assert_allclose(answer, model(x), atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(policy):
    layer = GRU(5, dtype=policy, return_sequences=True)
    x, _ = inputs()
    full = GRU(5, return_sequences=True)
    full.build(x.shape)
    layer.build(x.shape)
    layer.set_weights(full.get_weights())
    assert layer(x).dtype == layer.compute_dtype
    assert all(w.dtype == "float32" for w in layer.weights)
    np.testing.assert_allclose(tf.cast(layer(x), tf.float32), full(x), atol=0.03)


@pytest.mark.parametrize(
    ("outer", "inner"), [("mixed_float16", "float32"), ("float32", "mixed_float16")]
)
def test_inside_a_wrapper_of_another_precision(outer, inner):
    """TimeDistributed runs `call` itself, with variables that its own policy has cast."""
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 4)).astype("float32")
    plain = keras.layers.GRU(3)
    wrapped = keras.layers.TimeDistributed(GRU(3, dtype=inner), dtype=outer)
    wrapped.build(x.shape)
    plain.build((2, 5, 4))
    wrapped.set_weights(plain.get_weights())
    wanted = np.stack([plain(x[:, t]) for t in range(3)], 1)
    np.testing.assert_allclose(tf.cast(wrapped(x), tf.float32), wanted, atol=0.003)


def random_ops_and_writes(layer, features=4):
    function = tf.function(layer, input_signature=[tf.TensorSpec((None, None, features))])
    graph = function.get_concrete_function().graph
    names = {op.type for op in graph.get_operations()}
    for nested in graph.as_graph_def().library.function:
        names |= {node.op for node in nested.node_def}
    return {n for n in names if "Random" in n or n.startswith(("Assign", "Stateless"))} - {
        "StatelessWhile",
        "StatelessIf",
    }


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: GRU(3, dropout=0.5, recurrent_dropout=0.5),
        lambda: keras.layers.RNN(GRUCell(3, dropout=0.5, recurrent_dropout=0.5)),
    ],
    ids=["GRU", "RNN(GRUCell)"],
)
def test_inference_graph_is_pure(wrap):
    layer = wrap()
    layer.build((None, None, 4))
    assert random_ops_and_writes(layer) == set()
    theirs = keras.layers.GRU(3, dropout=0.5)
    theirs.build((None, None, 4))
    assert random_ops_and_writes(theirs), "the scan must see what Keras' own graph holds"


@pytest.mark.parametrize("unroll", [False, True])
def test_dropout_masks_are_the_same_at_every_step(unroll):
    """With weights that copy the input, a dropped input stays dropped at all steps."""
    layer = GRU(
        8,
        activation="linear",
        use_bias=False,
        dropout=0.5,
        seed=1,
        return_sequences=True,
        unroll=unroll,
    )
    layer.build((4, 6, 8))
    kernel = np.concatenate([np.full((8, 8), -1e4), np.zeros((8, 8)), np.eye(8)], 1)
    layer.set_weights([kernel, np.zeros((8, 24))])
    kept = layer(np.ones((4, 6, 8), "float32"), training=True).numpy() != 0
    assert (kept == kept[:, :1]).all()
    assert 0.2 < kept.mean() < 0.8
    again = layer(np.ones((4, 6, 8), "float32"), training=True).numpy() != 0
    assert (kept != again).any()


def test_recurrent_dropout_is_the_same_on_both_paths():
    x, h0 = inputs()
    results = []
    for unroll in (False, True):
        layer = GRU(5, recurrent_dropout=0.5, dropout=0.3, seed=3, unroll=unroll)
        layer.build(x.shape)
        rng = np.random.default_rng(0)
        layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
        results.append(layer(x, initial_state=h0, training=True))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"units": 0}, "units.*positive integer.*0"),
        ({"units": None}, "units.*positive integer.*None"),
        ({"units": "many"}, "units.*positive integer.*many"),
        ({"units": 2.5}, "units.*positive integer.*2.5"),
        ({"units": True}, "units.*positive integer.*True"),
        ({"units": float("inf")}, "units.*positive integer.*inf"),
        ({"units": float("nan")}, "units.*positive integer.*nan"),
        ({"dropout": 1.5}, r"dropout.*\[0, 1\).*1.5"),
        ({"dropout": None}, r"dropout.*\[0, 1\).*None"),
        ({"recurrent_dropout": -0.1}, r"recurrent_dropout.*\[0, 1\).*-0.1"),
        ({"update_gate": "both"}, "update_gate.*keep.*replace.*both"),
        ({"use_cudnn": "no"}, "use_cudnn.*no"),
        ({"implementation": 3}, "implementation.*3"),
    ],
)
def test_constructor_errors_name_argument_expectation_and_value(arguments, words):
    with pytest.raises(ValueError, match=words):
        GRU(**{"units": 4, **arguments})


@pytest.mark.parametrize("make", [GRU, GRUCell, MGUCell])
def test_units_may_be_any_whole_number(make):
    for units in (4.0, np.int64(4), np.float32(4)):
        layer = make(units)
        assert (layer.units, type(layer.units)) == (4, int)


def test_call_errors_name_the_layer():
    layer = GRU(4, name="encoder")
    layer.build((None, None, 3))
    with pytest.raises(ValueError, match=r"encoder.*incompatible"):
        layer(np.zeros((2, 5, 7), "float32"))
    with pytest.raises(ValueError, match=r"initial_state.*encoder.*\(batch, 4\).*\(2, 9\)"):
        layer(np.zeros((2, 5, 3), "float32"), initial_state=np.zeros((2, 9), "float32"))
    with pytest.raises(ValueError, match=r"encoder.*at least one time step"):
        layer(np.zeros((2, 0, 3), "float32"))
    with pytest.raises(ValueError, match=r"use_cudnn=True.*no GPU"):
        GRU(4, use_cudnn=True)(np.zeros((2, 5, 3), "float32"))


@pytest.mark.parametrize("activation", ["tanh", "softsign"], ids=["fused", "loop"])
@pytest.mark.parametrize(
    "states",
    [np.zeros((1, 4)), np.zeros((2, 4)), [np.zeros((3, 4))] * 2, [], "zeros"],
    ids=["one row", "other batch", "two states", "no state", "word"],
)
def test_wrong_initial_states_are_named(activation, states):
    layer = GRU(4, activation=activation, name="encoder")
    with pytest.raises(ValueError, match=r"initial_state.*encoder.*one state.*\(batch, 4\).*of 3"):
        layer(np.zeros((3, 5, 2), "float32"), initial_state=states)


@pytest.mark.parametrize("activation", ["tanh", "softsign"], ids=["fused", "loop"])
def test_mask_shapes(activation):
    layer = GRU(5, activation=activation, return_sequences=True, name="encoder")
    x, _ = inputs()
    wanted = layer(x, mask=MASK)
    for mask in (MASK[..., np.newaxis], MASK.astype("float32"), MASK.astype("int64"), [MASK]):
        np.testing.assert_array_equal(layer(x, mask=mask), wanted)
    np.testing.assert_array_equal(layer(x, mask=MASK[:1]), layer(x, mask=np.tile(MASK[:1], (3, 1))))
    for wrong in (MASK[:, :4], MASK[0], MASK[:2], MASK.tolist()):
        with pytest.raises(ValueError, match=r"mask.*encoder.*shape \(3, 6\).*Received"):
            layer(x, mask=wrong)


@pytest.mark.parametrize("activation", ["tanh", "softsign"], ids=["fused", "loop"])
def test_integer_inputs_equal_float_ones(activation):
    layer = GRU(4, activation=activation, dropout=0.5)
    x = np.arange(30).reshape(3, 5, 2) % 3
    np.testing.assert_array_equal(layer(x), layer(x.astype("float32")))
    assert layer(x, training=True).shape == (3, 4)


@pytest.mark.parametrize("cell_class", [GRUCell, MGUCell])
def test_cells_take_integers(cell_class):
    cell = cell_class(4)
    x, h = np.array([[1, 2, 0], [0, 1, 1]]), tf.ones((2, 4))
    np.testing.assert_array_equal(cell(x, h)[0], cell(x.astype("float32"), h)[0])


def test_dropout_masks_do_not_outlive_an_error(monkeypatch):
    layer = GRU(4, dropout=0.5, recurrent_dropout=0.5, unroll=True)
    x = np.ones((3, 5, 2), "float32")
    layer(x)

    def fail(*_, **__):
        raise RuntimeError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(layer.cell, "zoneout_share", fail)
        with pytest.raises(RuntimeError, match="interrupted"):
            layer(x, training=True)
    assert layer(x[:2], training=True).shape == (2, 4)


def test_keras_export_is_portable_and_equal(tmp_path):
    model = keras.Sequential(
        [
            keras.layers.Input((None, 4)),
            keras.layers.Masking(),
            keras.layers.Bidirectional(GRU(5, dropout=0.5, return_sequences=True)),
            GRU(3, recurrent_dropout=0.5, zoneout=0.1),
        ]
    )
    model.export(tmp_path, verbose=False)
    assert portability_faults(tmp_path) == []
    x = np.array(inputs()[0])
    x[1, 3:] = 0  # masked
    served = tf.saved_model.load(tmp_path).signatures["serving_default"]
    (answer,) = served(tf.constant(x)).values()
    np.testing.assert_allclose(answer, model(x), rtol=1e-5, atol=1e-6)


def test_stateful_rejects_another_batch_size():
    layer = GRU(4, stateful=True)
    layer(np.zeros((2, 5, 3), "float32"))
    with pytest.raises(ValueError, match="batch size"):
        layer(np.zeros((3, 5, 3), "float32"))


def test_public_names_are_real():
    assert all(hasattr(keras_gru, name) for name in keras_gru.__all__)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("options", [{}, {"reset_after": False}, {"path": "loop"}], ids=str)
def test_what_is_masked_reaches_no_gradient(options, graph):
    """NaN and infinity at masked steps: the gradients are those with zeros there."""
    layer = GRU(5, return_sequences=True, **options)
    x, h0 = inputs()
    layer.build(x.shape)

    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch((x, h0))
            loss = tf.reduce_sum(tf.sin(layer(x, initial_state=h0, mask=MASK, training=True)))
        return tape.gradient(loss, [x, h0, *(w.value for w in layer.trainable_weights)])

    run = tf.function(gradients) if graph else gradients
    wanted = run(tf.where(MASK[..., None], x, 0.0))
    for worthless in (np.nan, np.inf):
        for actual, value in zip(run(tf.where(MASK[..., None], x, worthless)), wanted, strict=True):
            np.testing.assert_allclose(actual, value, rtol=1e-5, atol=1e-6)


class DoublingCell(GRUCell):
    def call(self, inputs, states, training=False):
        output, states = super().call(inputs, states, training=training)
        return 2 * output, states


def test_a_cell_with_a_call_of_its_own_is_called():
    layer = GRU(5, return_sequences=True)
    layer.cell = DoublingCell(5)
    plain = GRU(5, return_sequences=True)
    x, _ = inputs()
    plain.build(x.shape)
    layer.build(x.shape)
    layer.set_weights(plain.get_weights())
    assert (plain.path, layer.path) == ("fused", "loop")
    np.testing.assert_allclose(layer(x), 2 * plain(x), rtol=1e-5, atol=1e-6)
