"""Pure graphs, dropout, errors, masks and exports of the layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_gru
from gru_serving.engine.portability import portability_faults
from keras_gru import GRU, GRUCell
from keras_gru.variants import MGUCell
from tests.keras_gru.layer.twins import MASK, inputs


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
        ({"zoneout": 1.2}, r"zoneout.*\[0, 1\).*1.2"),
        ({"dropconnect": 1.2}, r"dropconnect.*\[0, 1\).*1.2"),
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
    with pytest.raises(ValueError, match=r"looped.*at least one time step on the path 'loop'"):
        GRU(4, path="loop", name="looped")(np.zeros((2, 0, 3), "float32"))
    with pytest.raises(ValueError, match=r"use_cudnn=True.*no GPU"):
        GRU(4, use_cudnn=True)(np.zeros((2, 5, 3), "float32"))


@pytest.mark.parametrize("cell", [GRUCell(4), MGUCell(4)])
def test_complex_inputs_are_refused(cell):
    """A cast would drop their imaginary part; Keras' layer refuses them, too."""
    x = tf.ones((2, 5, 3), tf.complex64)
    for layer in (GRU(4), keras.layers.RNN(cell)):
        with pytest.raises(ValueError, match=r"must hold real numbers. Received: complex64"):
            layer(x)


@pytest.mark.parametrize("activation", ["tanh", "softsign"], ids=["fused", "loop"])
@pytest.mark.parametrize(
    "states",
    [np.zeros((2, 4)), [np.zeros((3, 4))] * 2, [], "zeros"],
    ids=["other batch", "two states", "no state", "word"],
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


def test_public_names_are_real():
    assert all(hasattr(keras_gru, name) for name in keras_gru.__all__)


@pytest.mark.slow_cases
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


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"return_sequences": True}, {"zero_output_for_mask": True}]
)
def test_no_step_leaves_the_state_in_eager_code_and_in_graphs(options, masked):
    layer = GRU(4, dropout=0.2, recurrent_dropout=0.2, return_state=True, **options)
    layer.build((None, None, 3))
    state = np.random.default_rng(0).normal(size=(2, 4)).astype("float32")
    sequences, mask = np.zeros((2, 0, 3), "float32"), np.zeros((2, 0), bool) if masked else None
    spec = [tf.TensorSpec([2, None, 3])] + [tf.TensorSpec([2, None], tf.bool)] * masked

    def run(sequences, mask=None):
        return layer(sequences, initial_state=state, mask=mask, training=True)

    graph = tf.function(run, input_signature=spec)
    for output, final in (run(sequences, mask), graph(sequences, *[mask] * masked)):
        np.testing.assert_array_equal(final, state)
        if "return_sequences" in options:
            assert output.shape == (2, 0, 4)
        else:  # a masked step shows nothing before it
            np.testing.assert_array_equal(output, 0 * state if masked else state)


@pytest.mark.parametrize(
    "use",
    [
        lambda both, x: both(x),
        lambda both, x: keras.Sequential([both])(x),
        lambda both, x: both(keras.Input(x.shape[1:])),
    ],
    ids=["called", "in a Sequential", "symbolic"],
)
def test_gates_in_a_bidirectional_layer_are_refused_by_name(use):
    both = keras.layers.Bidirectional(GRU(4, return_gates=True), name="both")
    with pytest.raises(ValueError, match=r"`return_gates` of layer 'forward_.*'both'.*two layers"):
        use(both, np.zeros((2, 5, 3), "float32"))


def test_the_way_out_of_gates_in_a_bidirectional_layer():
    model = keras.Sequential([keras.layers.Identity(), GRU(4, return_gates=True, name="forward_1")])
    assert len(model(np.zeros((2, 5, 3), "float32"))) == 4, "no wrapper is at work"
    backwards = GRU(4, return_gates=True, go_backwards=True, name="backward_1")
    assert len(backwards(np.zeros((2, 5, 3), "float32"))) == 4
