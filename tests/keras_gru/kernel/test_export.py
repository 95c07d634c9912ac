"""Inference without XLA, in an export or not: every length, mask and activation, in one loop."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_gru import GRU, portable
from keras_gru.functional import Convention
from keras_gru.kernel import execution, export
from keras_gru.kernel import weights as layout
from tests.covering import covering
from tests.keras_gru.kernel.sequence_problem import CONVENTIONS, expected, problem, sequence


@pytest.fixture
def ran(monkeypatch):
    """One entry for each loop traced."""
    ran = []

    def counted(*args):
        ran.append(args)
        return run(*args)

    run = export.run
    monkeypatch.setattr(export, "run", counted)
    return ran


def exported(function, *specs):
    """The function as an export would trace it."""
    with portable():
        return tf.function(function).get_concrete_function(*specs)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("target", "reset_after", "update_gate", "go_backwards", "masked"),
    covering(
        3, ("export", "plain"), (True, False), ("keep", "replace"), (False, True), (False, True)
    ),
)
def test_every_length_equals_the_oracle(
    ran, target, reset_after, update_gate, go_backwards, masked
):
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    weights, _ = problem(reset_after=reset_after)

    def run(x, h0, mask):
        result = sequence(
            *(x, h0, weights["kernel"], weights["recurrent_kernel"], weights["bias"]),
            Convention(**convention),
            mask=mask if masked else None,
            go_backwards=go_backwards,
            training=False,
            path="plain",
        )
        return result.states, result.final

    trace = exported if target == "export" else lambda f, *s: tf.function(f, s)
    graph = trace(
        run,
        tf.TensorSpec((None, None, 4), tf.float64),
        tf.TensorSpec((None, 6), tf.float64),
        tf.TensorSpec((None, None), tf.bool),
    )
    for steps in range(1, 2 * execution.UNROLL + 2):
        inputs, upstream = problem(3, steps, reset_after=reset_after, seed=steps)
        inputs |= {name: weights[name] for name in ("kernel", "recurrent_kernel", "bias")}
        mask = np.random.default_rng(steps).uniform(size=(3, steps)) < 0.7
        states, final, _ = expected(
            inputs,
            upstream,
            mask=mask if masked else None,
            go_backwards=go_backwards,
            **convention,
        )
        # What masked steps contain must not matter.
        x = np.where(mask[..., np.newaxis] | (not masked), inputs["x"], np.nan)
        actual = graph(*map(tf.constant, (x, inputs["h0"], mask)))
        np.testing.assert_allclose(actual[0], states, rtol=0, atol=1e-12)
        np.testing.assert_allclose(actual[1], final, rtol=0, atol=1e-12)
    h0 = inputs["h0"]
    states, final = graph(np.zeros((3, 0, 4)), h0, np.zeros((3, 0), bool))
    assert states.shape == (3, 0, 6)
    np.testing.assert_array_equal(final, h0)
    assert len(ran) == 1


@pytest.mark.slow_cases
@pytest.mark.parametrize("steps", [1, 2, 8, 21])
@pytest.mark.parametrize("zoneout", [None, "share", "shares"])
@pytest.mark.parametrize(
    ("activation", "recurrent_activation"),
    [
        ("tanh", "sigmoid"),
        ("hard_sigmoid", "hard_sigmoid"),
        ("relu", "sigmoid"),
        ("tanh", "linear"),
    ],
)
def test_known_lengths_equal_eager_code(ran, steps, zoneout, activation, recurrent_activation):
    inputs, _ = problem(4, steps, reset_after=True, use_bias=steps != 8)
    inputs = {k: None if v is None else v / 4 for k, v in inputs.items()}
    shares = np.random.default_rng(0).uniform(size=(4, steps, 6))
    mask = np.random.default_rng(1).uniform(size=(4, steps)) < 0.7
    options = {
        "zoneout": {None: None, "share": np.float64(0.3), "shares": shares}[zoneout],
        "mask": None if steps == 21 else mask,
        "go_backwards": steps == 8,
        "training": False,
    }
    convention = Convention(activation=activation, recurrent_activation=recurrent_activation)
    arguments = [*inputs.values(), convention]
    eager = sequence(*arguments, **options)
    assert not ran
    states, final = exported(lambda: sequence(*arguments, **options)[:2])()
    assert len(ran) == (steps > 1)
    np.testing.assert_allclose(states, eager.states, rtol=0, atol=1e-13)
    np.testing.assert_allclose(final, eager.final, rtol=0, atol=1e-13)


def test_masked_steps_keep_the_state_to_the_last_bit():
    layer = GRU(8, return_sequences=True)
    x = np.random.default_rng(0).normal(size=(3, 30, 4)).astype("float32")
    mask = np.arange(30) < [[11], [1], [30]]
    layer.build(x.shape)
    states = exported(lambda: layer(x, mask=mask))().numpy()
    np.testing.assert_array_equal(states[0, 11:], np.broadcast_to(states[0, 10], (19, 8)))
    np.testing.assert_array_equal(states[1, 1:], np.broadcast_to(states[1, 0], (29, 8)))


def test_any_number_of_rows():
    layer = GRU(8, return_sequences=True)
    layer.build((None, None, 4))
    run = exported(layer, tf.TensorSpec((None, None, 4)))
    rng = np.random.default_rng(0)
    for rows in (0, 1, 2, 65, 600):
        x = rng.normal(size=(rows, 5, 4)).astype("float32")
        np.testing.assert_allclose(run(tf.constant(x)), layer(x), rtol=0, atol=1e-6)
    assert run(tf.zeros((1, 1, 4))).shape == (1, 1, 8)


@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("rows", [None, 7])
def test_blocks_of_rows_equal_one_block(monkeypatch, rows, return_sequences):
    """Masks, shares of zoneout and initial states are cut as the rows are, in either direction."""
    monkeypatch.setattr(execution, "SMALL_PLAIN_STATE", 1)
    rng = np.random.default_rng(0)
    inputs, _ = problem(7, 10, reset_after=True)
    options = {
        "mask": rng.uniform(size=(7, 10)) < 0.7,
        "zoneout": rng.uniform(size=(7, 10, 6)),
        "go_backwards": True,
        "return_sequences": return_sequences,
        "training": False,
    }
    weights = [inputs[name] for name in ("kernel", "recurrent_kernel", "bias")]

    def run(x, h0, mask, zoneout):
        given = options | {"mask": mask, "zoneout": zoneout}
        result = sequence(x, h0, *weights, Convention(), **given)
        return [v for v in (result.states, result.final) if v is not None]

    arguments = inputs["x"], inputs["h0"], options["mask"], options["zoneout"]
    specs = [tf.TensorSpec((rows, *v.shape[1:]), v.dtype) for v in arguments]
    graph = exported(run, *specs)
    operations = [
        node.op for f in graph.graph.as_graph_def().library.function for node in f.node_def
    ]
    assert sum("While" in operation for operation in operations) == 2
    eager = sequence(inputs["x"], inputs["h0"], *weights, Convention(), **options)
    actual = graph(*map(tf.constant, arguments))
    np.testing.assert_allclose(actual[-1], eager.final, rtol=0, atol=1e-13)
    if return_sequences:
        np.testing.assert_allclose(actual[0], eager.states, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_an_export_has_one_loop_per_direction_and_one_function_for_all(tmp_path):
    """No conditionals; the number of functions does not grow with the number of layers."""

    def functions(layers):
        directions = [
            keras.layers.Bidirectional(GRU(8, return_sequences=True)) for _ in range(layers)
        ]
        model = keras.Sequential(
            [
                keras.layers.Input((None,), dtype="int32"),
                keras.layers.Embedding(9, 4, mask_zero=True),
                *directions,
            ]
        )
        model.export(tmp_path / str(layers), verbose=False)
        content = (tmp_path / str(layers) / "saved_model.pb").read_bytes()
        library = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def.library
        operations = [node.op for f in library.function for node in f.node_def]
        assert not {"If", "StatelessIf"} & set(operations)
        # One for the features of the embedding, one for those of the layers: over steps and blocks.
        assert sum("While" in operation for operation in operations) == 2 * min(layers, 2)
        return len(library.function)

    assert functions(2) == functions(4)


@pytest.mark.parametrize(
    ("large", "columns"), [(72, [12, 6]), (40, [6, 6, 6]), (30, [3, 3, 3, 3, 3, 3])]
)
@pytest.mark.parametrize(("reset_after", "update_gate"), CONVENTIONS)
def test_large_recurrent_kernels_are_cut_into_columns(
    monkeypatch, large, columns, reset_after, update_gate
):
    """Six units: the two gates have 72 recurrent weights, the candidate 36."""
    monkeypatch.setattr(layout, "LARGE_PRODUCT", large)
    seen, rule = [], layout.columns

    def noted(kernel):
        cut = rule(kernel)
        seen.extend(v.shape[-1] for v in tf.nest.flatten(cut))
        return cut

    monkeypatch.setattr(export, "columns", noted)
    convention = {"reset_after": reset_after, "update_gate": update_gate}
    inputs, upstream = problem(4, 11, reset_after=reset_after)
    states, final, _ = expected(inputs, upstream, mask=None, go_backwards=False, **convention)
    arguments = [*inputs.values(), Convention(**convention)]
    result = exported(lambda: sequence(*arguments, training=False)[:2])()
    np.testing.assert_allclose(result[0], states, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result[1], final, rtol=0, atol=1e-12)
    assert seen == columns


def xla_functions(directory):
    """Names of the functions of a SavedModel that only XLA can run."""
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((directory / "saved_model.pb").read_bytes())
    graph = saved_model.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return [
        item.signature.name if hasattr(item, "signature") else item.name
        for item in (*graph.library.function, *nodes)
        if item.attr["_XlaMustCompile"].b
    ]


def test_exports_hold_no_xla_function(tmp_path):
    """With Keras' export and with TensorFlow's, for models that have already run with XLA."""
    model = keras.Sequential([keras.layers.Input((None, 4)), GRU(3)])
    model.predict(np.zeros((2, 5, 4), "float32"), verbose=0)
    assert model.layers[0].last_path == "xla"
    model.export(tmp_path / "keras", verbose=False)
    assert xla_functions(tmp_path / "keras") == []

    module = tf.Module()
    module.layer = model.layers[0]
    module.run = tf.function(model.layers[0], input_signature=[tf.TensorSpec((None, None, 4))])
    tf.saved_model.save(module, tmp_path / "tensorflow", signatures=module.run)
    assert xla_functions(tmp_path / "tensorflow") == []

    module.run = tf.function(model.layers[0])
    module.run(tf.zeros((2, 5, 4)))
    tf.saved_model.save(module, tmp_path / "traced")
    assert xla_functions(tmp_path / "traced") == []

    module.run = tf.function(
        lambda x: x + 1, jit_compile=True, input_signature=[tf.TensorSpec((None,))]
    )
    tf.saved_model.save(module, tmp_path / "compiled")
    assert xla_functions(tmp_path / "compiled"), "the check must see one where there is one"
