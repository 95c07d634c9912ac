"""Which path runs, and that every path computes the same, for known and unknown shapes."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.functional import Convention
from keras_gru.kernel import execution
from keras_gru.kernel.execution import ROWS, STEPS, Extent, portable
from tests.keras_gru.kernel.sequence_problem import (
    assert_close,
    computed,
    expected,
    problem,
    sequence,
)

PATHS = ("xla", "plain")


def test_rule():
    layer, inputs = GRU(3), tf.zeros((2, 4, 5))
    assert layer.last_path is None
    layer(inputs)
    assert layer.last_path == "plain", "eager code"
    tf.function(layer)(inputs)
    assert layer.last_path == "xla", "a graph"
    tf.function(layer, jit_compile=True)(inputs)
    assert layer.last_path == "xla", "a graph that XLA compiles as a whole"
    tf.function(layer)(inputs[:, :1])
    assert layer.last_path == "plain", "a single step"
    with portable():
        tf.function(layer)(inputs)
    assert layer.last_path == "plain", "a portable graph"
    looped = GRU(3, path="loop")
    tf.function(looped)(inputs)
    assert (looped.path, looped.last_path) == ("loop", "loop")


def test_plan_cuts_large_batches_only(monkeypatch):
    monkeypatch.setattr(execution, "cores", lambda: 4)
    with tf.Graph().as_default():
        assert execution.choose_plan("auto", 64, 90, 8, 64).blocks == 4
        assert execution.choose_plan("auto", 64, None, 8, 64).blocks == 4
        assert execution.choose_plan("auto", None, None, 8, 64).blocks == 4
        assert execution.choose_plan("auto", 64, 9, 8, 64).blocks == 1, "short"
        assert execution.choose_plan("auto", 8, 900, 8, 64).blocks == 4, "few rows, but long"
        assert execution.choose_plan("auto", 1, 900, 8, 640).blocks == 1, "nothing to cut"
        assert execution.choose_plan("auto", 3, 900, 8, 64).blocks == 3, "fewer rows than cores"
        assert execution.choose_plan("auto", 4, 900, 8, 399).blocks == 4
        assert execution.choose_plan("auto", 4, 900, 8, 400).blocks == 1, "weights take the time"
        assert execution.choose_plan("auto", 5, 900, 8, 400).blocks == 4
        assert execution.choose_plan("plain", None, 9, 8, 64).blocks == execution.PLAIN_BLOCKS


def test_plan_projects_in_the_loop_where_that_saves_memory_traffic():
    with tf.Graph().as_default():
        assert execution.choose_plan("auto", 64, 90, 128, 64).project_in_loop
        assert execution.choose_plan("auto", None, None, 128, 64).project_in_loop
        assert execution.choose_plan("auto", 16, 900, 1, 64).project_in_loop, (
            "many units per feature"
        )
        assert not execution.choose_plan("auto", 64, 90, 129, 64).project_in_loop, "many features"
        assert not execution.choose_plan("auto", 16, 900, 32, 64).project_in_loop, "few rows"
        assert not execution.choose_plan("auto", 256, 900, 16, 11).project_in_loop, "recalled"
        assert not execution.choose_plan("auto", 64, 9, 128, 64).project_in_loop, "short"


def test_asking_for_a_path_that_cannot_run_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"path.*one of.*'fast'"):
        GRU(3, path="fast")
    with pytest.raises(ValueError, match=r"`path` needs the path 'fused'.*unroll=True"):
        GRU(3, path="xla", unroll=True)
    with pytest.raises(ValueError, match=r"cuDNN.*no GPU" if not execution.on_gpu() else "mask"):
        GRU(3, path="cudnn")(np.zeros((2, 4, 5), "float32"), mask=np.ones((2, 4), bool))
    model = keras.Sequential([keras.layers.Input((None, 5)), GRU(3, path="xla")])
    with pytest.raises(RuntimeError, match=r"path='xla' cannot be exported"):
        model.export(tmp_path, verbose=False)


def test_without_xla_the_rule_takes_plain_operations(monkeypatch):
    monkeypatch.setattr(execution, "_xla_works", lambda: False)
    layer, inputs = GRU(3), tf.zeros((2, 4, 5))
    tf.function(layer)(inputs)
    assert layer.last_path == "plain"
    with pytest.raises(RuntimeError, match="cannot compile with XLA"):
        tf.function(GRU(3, path="xla"))(inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "blocks"), [("xla", 1), ("xla", 3), ("plain", 3)])
@pytest.mark.parametrize(("reset_after", "go_backwards"), [(True, False), (False, True)])
def test_blocks_of_rows_of_unknown_size(monkeypatch, reset_after, go_backwards, path, blocks):
    """Every batch size and length, with padding and uneven blocks, in one trace."""
    monkeypatch.setattr(execution, "cores", lambda: blocks)
    monkeypatch.setattr(execution, "PLAIN_BLOCKS", blocks)
    monkeypatch.setattr(execution, "SMALL_PLAIN_STATE", 13)  # two rows or fewer count as small
    spec = [(None, None, 4), (None, 6), (None, None), (None, None, 6), (None, 6)]
    traces = []

    @tf.function(
        input_signature=[
            tf.TensorSpec(shape, tf.bool if i == 2 else tf.float64) for i, shape in enumerate(spec)
        ]
    )
    def run(x, h0, mask, d_states, d_final):
        traces.append(1)
        sources = [x, h0, *(tf.constant(inputs[k]) for k in ("kernel", "recurrent_kernel", "bias"))]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            result = sequence(
                *sources,
                Convention(reset_after),
                mask=mask,
                go_backwards=go_backwards,
                path=path,
            )
            loss = tf.reduce_sum(result.states * d_states) + tf.reduce_sum(result.final * d_final)
        assert result.path == path
        return result.states, result.final, tape.gradient(loss, sources)

    inputs, _ = problem(reset_after=reset_after)
    for batch, steps in ((1, 1), (2, 9), (7, 13)):
        inputs, upstream = problem(batch, steps, reset_after=reset_after, seed=3)
        weights, _ = problem(reset_after=reset_after)
        inputs |= {k: weights[k] for k in ("kernel", "recurrent_kernel", "bias")}
        mask = np.random.default_rng(batch).uniform(size=(batch, steps)) < 0.7
        wanted = expected(
            inputs, upstream, mask=mask, go_backwards=go_backwards, reset_after=reset_after
        )
        actual = run(inputs["x"], inputs["h0"], mask, upstream["states"], upstream["final"])
        assert_close(actual[:2], wanted[:2], 1e-12)
        assert_close(actual[2], wanted[2], 1e-11)
    assert len(traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_small_batches_of_unknown_size_infer_the_same(monkeypatch, path):
    monkeypatch.setattr(execution, "SMALL_PLAIN_STATE", 13)
    inputs, _ = problem(reset_after=True)

    @tf.function(input_signature=[tf.TensorSpec((None, None, 4), tf.float64)])
    def run(x):
        h0 = tf.zeros((tf.shape(x)[0], 6), tf.float64)
        weights = (inputs[k] for k in ("kernel", "recurrent_kernel", "bias"))
        return sequence(x, h0, *weights, Convention(), training=False, path=path).states

    for batch in (1, 2, 3, 8):
        x = np.random.default_rng(batch).normal(size=(batch, 6, 4))
        alone = [run(row[np.newaxis])[0] for row in x]
        assert_close(run(x), alone, 1e-13)


def test_an_epoch_of_many_lengths_traces_and_compiles_little(monkeypatch):
    rng = np.random.default_rng(0)
    lengths = range(5, 65)
    data = [(rng.normal(size=(4, t, 3)).astype("float32"), np.ones((4, 1))) for t in lengths]
    dataset = tf.data.Dataset.from_generator(
        lambda: itertools.cycle(data),
        output_signature=(tf.TensorSpec((4, None, 3)), tf.TensorSpec((4, 1))),
    )
    model = keras.Sequential([GRU(8), keras.layers.Dense(1)])
    traces = []
    call = GRU.call
    monkeypatch.setattr(GRU, "call", lambda *a, **k: traces.append(1) or call(*a, **k))
    model.compile("sgd", "mse")
    model.fit(dataset, epochs=1, steps_per_epoch=len(data), verbose=0, shuffle=False)
    assert model.layers[0].last_path == "xla"
    assert len(traces) <= 3  # building, and one graph


def test_padded_sizes_waste_little():
    assert all(b / a <= 2 for a, b in itertools.pairwise(STEPS[1:]))
    assert all(b / a <= 1.5 for a, b in itertools.pairwise(STEPS) if a >= 512)
    assert all(b / a <= 1.25 for a, b in itertools.pairwise(ROWS[4:]))


def test_a_small_batch_is_one_block_of_a_fixed_size(monkeypatch):
    """So the smaller last batch of an epoch runs in the program of the others."""
    monkeypatch.setattr(execution, "cores", lambda: 2)

    @tf.function(input_signature=[tf.TensorSpec((None, None, 3))], autograph=False)
    def sizes(x):
        plan = execution.choose_plan("auto", None, None, 3, 64)
        extent = Extent.of(x, plan, 64)
        return extent.block_rows, extent.steps_by_block(plan)

    found = {rows: sizes(tf.zeros((rows, 50, 3))) for rows in (1, 2, 9, 16, 17, 32, 50)}
    assert [int(v[0]) for v in found.values()] == [1, 16, 16, 16, 10, 16, 28]
    taken = [[int(steps) for steps in v[1]] for v in found.values()]
    assert taken == [[50, 1]] * 4 + [[50, 50]] * 3
    assert [execution.rows_of_one_block(units) for units in (16, 64, 128, 512)] == [16, 16, 4, 1]


def test_jacobian_where_a_block_has_no_rows(monkeypatch):
    monkeypatch.setattr(execution, "cores", lambda: 2)
    layer, theirs = GRU(4), keras.layers.GRU(4)
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 3)), tf.float32)
    theirs(x)
    layer.build((None, None, 3))
    layer.set_weights(theirs.get_weights())

    def jacobian(layer, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, training=True)
        return tape.batch_jacobian(output, x)

    of_any_batch = tf.function(
        lambda x: jacobian(layer, x), input_signature=[tf.TensorSpec((None, 5, 3))]
    )
    np.testing.assert_allclose(of_any_batch(x), jacobian(theirs, x), atol=1e-6)


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", PATHS)
def test_runs_are_deterministic(path):
    inputs, upstream = problem(64, 7, 4, 40, reset_after=True)
    run = tf.function(lambda: computed(inputs, upstream, Convention(), dtype=tf.float32, path=path))
    first, second = (tf.nest.flatten(run()) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow_cases
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_keeps_the_recurrence_in_float32(policy):
    """Closer to the float32 layer than Keras' layer with the same policy, over a long sequence."""
    keras.utils.set_random_seed(1)
    x = np.random.default_rng(1).normal(size=(8, 200, 16)).astype("float32")
    exact = keras.layers.GRU(32)
    wanted = exact(x)
    errors = {}
    for name, layer in (
        ("ours", GRU(32, dtype=policy)),
        ("keras", keras.layers.GRU(32, dtype=policy)),
    ):
        layer.build(x.shape)
        layer.set_weights(exact.get_weights())
        output = tf.function(layer)(x)
        assert output.dtype == ("bfloat16" if "bf" in policy else "float16")
        assert {weight.dtype for weight in layer.weights} == {"float32"}
        errors[name] = np.abs(tf.cast(output, tf.float32) - wanted)
    assert errors["ours"].max() < (0.02 if "bf" in policy else 0.003)
    # The largest difference may come from rounding the output, which both layers do.
    assert errors["ours"].mean() < 0.8 * errors["keras"].mean()


@pytest.mark.parametrize("reset_after", [True, False])
def test_single_steps_carry_a_sequence(reset_after):
    layer = GRU(6, reset_after=reset_after, return_sequences=True, return_state=True)
    x = np.random.default_rng(4).normal(size=(3, 5, 4)).astype("float32")
    whole, final = layer(x)
    advance = tf.function(lambda step, state: layer(step, initial_state=state))
    state = tf.zeros((3, 6))
    for t in range(5):
        output, state = advance(x[:, t : t + 1], state)
        assert_close([output[:, 0]], [whole[:, t]], 1e-6)
    assert_close([state], [final], 1e-6)
    operations = {
        op.type for op in advance.get_concrete_function(x[:, :1], state).graph.get_operations()
    }
    assert not operations & {"While", "StatelessWhile", "TensorListReserve"}


@pytest.mark.skipif(not execution.on_gpu(), reason="no GPU")
@pytest.mark.parametrize("mask", [None, "right", "left", "interior", "empty row"])
def test_gpu_equals_cpu(mask):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(6, 20, 8)).astype("float32")
    masks = {
        "right": np.arange(20) < rng.integers(1, 21, (6, 1)),
        "left": np.arange(20) >= rng.integers(0, 20, (6, 1)),
        "interior": rng.uniform(size=(6, 20)) < 0.5,
        "empty row": np.arange(6)[:, None] * np.ones(20) > 0,
    }
    layer = GRU(16, return_sequences=True)
    layer.build(x.shape)

    def run():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, mask=masks.get(mask), training=True) ** 2)
        return tape.gradient(loss, [v.value for v in layer.trainable_variables])

    with tf.device("GPU:0"):
        on_gpu = tf.function(run)()
    assert layer.last_path == ("cudnn" if mask is None else "xla")
    with tf.device("CPU:0"):
        on_cpu = run()
    assert_close(on_gpu, on_cpu, 1e-4)
