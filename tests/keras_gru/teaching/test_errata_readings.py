"""Errata about figures, names and readings of numbers: what is said, calculated."""

from copy import deepcopy
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example
from tests import oracle
from tests.keras_gru.plain_network import by_autodiff
from tests.keras_gru.teaching.errata import confirms, derivative, random_gru

GOOD_MOVIE = load_example("good_movie")
TEXTS = Path(__file__).parents[4] / "shared" / "texts"


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def good_movie():
    """By the trace, and the same by a tape."""
    network = GOOD_MOVIE.network()
    return network, trace(network).steps, by_autodiff(network)[0]


def words(*inputs):
    """Steps of the example's network for other words."""
    fields = deepcopy(GOOD_MOVIE.content["network"])
    fields |= {"inputs": [list(word) for word in inputs], "targets": None, "tokens": None}
    return trace(parse_network(fields)).steps


GOOD, BAD, MOVIE = np.eye(4)[:3]


@confirms("EX-16")
def test_four_steps_leave_a_third_of_the_gradient():
    words = ["The", "clouds", "are", "in", "the", "sky"]
    steps = words.index("sky") - words.index("clouds")
    assert 0.75**steps == pytest.approx(0.316, abs=5e-4)
    # A vanilla RNN of one unit, at slope 0.75 and weight 1 all the way.
    bias = np.arctanh(0.5) - 0.5
    layer = keras.layers.SimpleRNN(1, dtype="float64")
    layer.build((1, steps, 1))
    layer.set_weights([np.zeros((1, 1)), np.ones((1, 1)), np.array([bias])])
    h0 = tf.constant([[0.5]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(h0)
        last = layer(tf.zeros((1, steps, 1), tf.float64), initial_state=h0)
    assert tape.gradient(last, h0).numpy().item() == pytest.approx(0.75**4, rel=1e-9)


@confirms("EX-17", "RN-12", "EX-19")
def test_a_cell_without_its_loop_gives_the_same_after_every_history(rng):
    W, U, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    x, other = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    other[1] = x[1]
    layer = keras.layers.SimpleRNN(3, dtype="float64")
    layer.build((1, 2, 2))
    layer.set_weights([W, U, b])
    assert np.max(np.abs(layer(x[None]) - layer(other[None]))) > 0.01  # y_1 depends on x_0
    layer.set_weights([W, 0 * U, b])  # as drawn, and as s_i = σ(U x_i + b) has it
    np.testing.assert_array_equal(layer(x[None]), layer(other[None]))
    np.testing.assert_allclose(layer(x[None])[0], np.tanh(x[1] @ W + b), atol=1e-14)


@confirms("EX-18")
def test_the_state_that_enters_first_is_the_zero_one(good_movie):
    network, steps, by_tape = good_movie
    np.testing.assert_array_equal(network.initial_state, np.zeros(3))
    printed = [0.124, 0.089, 0.040]  # what the text calls h_0
    for found in (steps, by_tape):
        np.testing.assert_array_equal(found[0]["h"], np.zeros(3))
        np.testing.assert_allclose(found[0]["h_new"], printed, atol=6e-4)
        np.testing.assert_allclose(found[1]["h"], printed, atol=6e-4)


@confirms("EX-20", "EX-23")
def test_two_blocks_are_gates_and_the_candidate_is_none(rng):
    kernel, recurrent, bias = random_gru(rng)
    x = rng.normal(size=(50, 2))
    _, cache = oracle.forward(x, np.zeros(3), kernel, recurrent, bias, reset_after=False)
    z, r, g = (np.array([step[k] for step in cache]) for k in (1, 2, 3))
    for gate in (z, r):
        assert gate.min() > 0
        assert gate.max() < 1
    assert -1 < g.min() < -0.1  # not in [0, 1]
    assert g.max() < 1
    layer = GRU(3, reset_after=False, return_sequences=True, return_gates=True, dtype="float64")
    layer.build((1, 50, 2))
    layer.set_weights([kernel, recurrent, bias])
    _, update, reset, candidate = layer(x[None])
    for ours, theirs in ((z, update), (r, reset), (g, candidate)):
        np.testing.assert_allclose(ours, theirs[0], atol=1e-12)
    slope = z * (1 - z)
    assert slope.min() > 0  # every gradient is let through


@confirms("EX-21")
def test_the_reset_gate_has_a_value_per_unit_and_not_per_word(rng):
    sentence = ["The", "cat", "which", "was", "very", "fluffy", "sat", "on", "the", "mat"]
    layer = GRU(5, return_gates=True)
    _, _, reset, _ = layer(rng.normal(size=(1, len(sentence), 3)).astype("float32"))
    assert reset[0, sentence.index("sat")].shape == (5,)
    assert len(sentence) == 10


@confirms("EX-22")
def test_states_stay_between_minus_one_and_one(rng):
    kernel, recurrent, bias = (20 * weight for weight in random_gru(rng))
    for reset_after in (False, True):
        b = np.stack([bias, bias]) if reset_after else bias
        for h0 in (np.zeros(3), rng.uniform(-1, 1, 3)):
            states, cache = oracle.forward(
                10 * rng.normal(size=(100, 2)), h0, kernel, recurrent, b, reset_after=reset_after
            )
            assert np.abs(states).max() <= 1
            assert max(np.abs(step[3]).max() for step in cache) <= 1  # the candidates
    for printed in (3.0, 5.0, 7.0):
        assert printed > 1


@confirms("EX-24", "EX-25")
def test_the_candidate_reads_the_input_and_not_the_update_gate(good_movie):
    network, steps, _ = good_movie
    W, U, b = network.kernel, network.recurrent_kernel, network.bias
    step = steps[1]
    np.testing.assert_allclose(
        np.tanh(step["x"] @ W["g"] + step["rh"] @ U["g"] + b["g"]), step["g"], atol=1e-15
    )
    # As drawn in the topology, without x: nothing at all at t = 0.
    np.testing.assert_array_equal(np.tanh(steps[0]["rh"] @ U["g"] + b["g"]), np.zeros(3))
    fields = deepcopy(GOOD_MOVIE.content["network"])
    fields["weights"]["z"]["b"] = [3.0, -2.0, 1.0]  # another update gate, the same candidate
    other = trace(parse_network(fields)).steps[0]
    np.testing.assert_array_equal(other["g"], steps[0]["g"])
    assert np.max(np.abs(other["z"] - steps[0]["z"])) > 0.1


@confirms("EX-25")
def test_the_update_gate_is_fed_by_the_state_before(good_movie):
    network, steps, by_tape = good_movie
    W, U, b = network.kernel["z"], network.recurrent_kernel["z"], network.bias["z"]

    def gate(x, h):
        return oracle.sigmoid(x @ W + h @ U + b)

    printed = [0.564, 0.586, 0.586]
    x, h_0, h_1 = steps[1]["x"], steps[0]["h_new"], steps[1]["h_new"]
    np.testing.assert_allclose(gate(x, h_0), printed, atol=6e-4)
    np.testing.assert_allclose(by_tape[1]["z"], printed, atol=6e-4)
    np.testing.assert_allclose(gate(x, h_1), [0.573, 0.600, 0.596], atol=5e-4)


@confirms("EX-26")
def test_the_gradient_of_the_reset_gate_comes_from_that_of_the_candidate(good_movie):
    network, steps, by_tape = good_movie
    U = network.recurrent_kernel["g"]
    for found in (steps, by_tape):
        step = found[1]
        before_tanh = step["d_g"] * (1 - step["g"] ** 2)  # tanh′ comes first
        np.testing.assert_allclose(before_tanh, step["d_a_g"], atol=1e-15)
        np.testing.assert_allclose((before_tanh @ U.T) * step["h"], step["d_r"], atol=1e-12)
        slope = step["r"] * (1 - step["r"])  # and σ′ last
        np.testing.assert_allclose(step["d_r"] * slope, step["d_a_r"], atol=1e-12)


@confirms("EX-27")
def test_every_bar_is_one_square_too_short():
    drawn = {57.4: 12, 55.0: 11, 59.9: 12, 58.6: 12, 56.1: 11, 61.3: 12, 56.4: 11}
    for percent, squares in drawn.items():
        assert round(22 * percent / 100) == squares + 1
    text = TEXTS / "gru_explained.md"
    if text.exists():
        bars = [line for line in text.read_text("utf-8").splitlines() if "█" in line]
        assert len(bars) == 12
        for bar in bars:
            percent = float(bar.split("│")[2].split("%")[0])
            assert bar.count("█") == drawn[percent]
            assert bar.count("█") + bar.count("░") == 22


@confirms("EX-28")
def test_the_first_update_gate_halves_the_state(good_movie):
    _, steps, by_tape = good_movie
    for found in (steps, by_tape):
        step = found[0]
        np.testing.assert_allclose(step["h_new"], (1 - step["z"]) * step["g"], atol=1e-15)
        np.testing.assert_allclose(step["g"], [0.291, 0.197, 0.100], atol=5e-4)
        assert np.all(step["h_new"] < 0.46 * step["g"])
    closed = deepcopy(GOOD_MOVIE.content["network"])
    closed["weights"]["r"]["b"] = [-50.0, -50.0, -50.0]  # the reset gate does nothing at t = 0
    other = trace(parse_network(closed)).steps[0]["h_new"]
    np.testing.assert_allclose(other, steps[0]["h_new"], atol=1e-15)


@confirms("EX-29")
def test_the_third_unit_grows_by_the_word_movie():
    after = {
        "good movie": words(GOOD, MOVIE)[1]["h_new"][2],
        "bad movie": words(BAD, MOVIE)[1]["h_new"][2],
        "movie": words(MOVIE)[0]["h_new"][2],
    }
    assert after["movie"] == pytest.approx(0.162, abs=5e-4)
    assert after["bad movie"] == pytest.approx(0.221, abs=5e-4)
    assert after["good movie"] == pytest.approx(0.194, abs=5e-4)


@confirms("EX-30")
def test_two_paths_are_not_the_whole(good_movie):
    _, steps, by_tape = good_movie
    for found in (steps, by_tape):
        step = found[1]
        two = step["dh_direct"] + step["dh_candidate"]
        np.testing.assert_allclose(two + step["dh_gates"], step["dh"], atol=1e-12)
        np.testing.assert_allclose(step["dh_gates"], [-0.0008, -0.0038, -0.0024], atol=5e-5)
        assert abs(step["dh_gates"][1] / step["dh_candidate"][1]) == pytest.approx(0.935, abs=0.01)


@confirms("EX-31")
def test_the_gates_are_not_saturated(good_movie):
    _, steps, _ = good_movie
    slopes = np.concatenate([steps[1]["slope_z"], steps[1]["slope_r"]])
    assert slopes.min() == pytest.approx(0.237, abs=5e-4)
    assert slopes.max() == pytest.approx(0.246, abs=5e-4)
    a = np.linspace(-5, 5, 1001)
    assert np.max(derivative(oracle.sigmoid, a[500:501])) == pytest.approx(0.25)


@confirms("EX-32")
def test_the_gradient_added_is_that_of_the_same_state(good_movie):
    _, steps, by_tape = good_movie
    for found in (steps, by_tape):
        total = found[0]["dh_output"] + found[1]["dh"]
        np.testing.assert_allclose(total, found[0]["dh_new"], atol=1e-12)
        as_written = found[0]["dh_output"] + found[1]["dh_new"]  # ∂L/∂h_{t+1}
        assert np.max(np.abs(as_written - found[0]["dh_new"])) > 0.02


@confirms("EX-33")
def test_one_term_is_not_the_sum(good_movie):
    network, steps, by_tape = good_movie
    for found in (steps, by_tape):
        np.testing.assert_allclose(found[1]["dW_out"].T[1], [0.089, 0.055, 0.098], atol=6e-4)
        total = found[0]["dW_out"] + found[1]["dW_out"]
        np.testing.assert_allclose(total.T[1], [0.151, 0.099, 0.118], atol=6e-4)
    np.testing.assert_allclose(total, trace(network).totals["dW_out"], atol=1e-12)


@confirms("EX-34")
def test_sections_of_the_table_of_contents_are_missing():
    """Quoted from the texts; compared with them where they are at hand."""
    if not TEXTS.exists():
        pytest.skip("needs the texts beside the checkout")
    explained = (TEXTS / "gru_explained.md").read_text("utf-8")
    for number, heading in ((5, "GRU vs Vanilla RNN Comparison"), (6, "Key Insights and Summary")):
        assert f"{number}. [{heading}]" in explained
        assert f"# {heading}" not in explained


@confirms("EX-35")
def test_the_slope_comes_before_the_matrix(rng):
    W, x = rng.normal(size=(3, 3)), rng.normal(size=3)
    h, gradient = rng.normal(size=3), rng.normal(size=3)
    new = np.tanh(W @ h + x)
    right = W.T @ ((1 - new**2) * gradient)
    as_written = (1 - new**2) * (W.T @ gradient)
    start = tf.constant(h)
    with tf.GradientTape() as tape:
        tape.watch(start)
        loss = tf.reduce_sum(gradient * tf.tanh(tf.linalg.matvec(W, start) + x))
    by_differences = gradient @ derivative(lambda h: np.tanh(W @ h + x), h)
    for confirmation in (tape.gradient(loss, start), by_differences):
        np.testing.assert_allclose(right, confirmation, atol=1e-9)
        assert np.max(np.abs(as_written - confirmation)) > 0.01


@confirms("EX-36")
def test_slopes_cannot_be_collected_before_the_matrices(rng):
    W = 0.9 * rng.normal(size=(3, 3))
    h0 = rng.normal(size=3)

    def run(h):
        states = [h]
        for _ in range(3):
            states.append(np.tanh(W @ states[-1]))
        return states

    slopes = [1 - state**2 for state in run(h0)[1:]]
    in_turn = np.linalg.multi_dot([np.diag(slope) @ W for slope in reversed(slopes)])
    by_differences = derivative(lambda h: run(h)[-1], h0)
    np.testing.assert_allclose(in_turn, by_differences, atol=1e-9)
    collected = np.diag(np.prod(slopes, axis=0)) @ np.linalg.matrix_power(W, 3)
    assert np.max(np.abs(collected - by_differences)) > 0.01
    once = np.diag(np.prod(slopes, axis=0)) @ W  # (W_hhᵀ)ᵀ, read as it stands
    assert np.max(np.abs(once - by_differences)) > 0.01


@confirms("EX-37")
def test_a_slope_of_three_quarters_is_no_saturation():
    assert np.sqrt(1 - 0.75) == 0.5
    at = np.arctanh(np.array([0.5, 0.99]))
    slopes = np.diag(derivative(np.tanh, at))
    np.testing.assert_allclose(slopes, [0.75, 0.0199], atol=1e-8)
    assert slopes[1] ** 8 < 1e-13


@confirms("NN-3")
def test_the_input_is_not_a_word_of_two():
    x = load_example("one_training_step").network().inputs[0]
    assert x.tolist() not in ([1, 0], [0, 1])
    one_hot = keras.ops.one_hot([0, 1], 2).numpy()
    assert x.tolist() not in one_hot.tolist()
    assert x.sum() == pytest.approx(1.4)


@confirms("NN-4")
def test_the_largest_gradients_compared_alike():
    network = load_example("one_training_step").network()
    _, totals = by_autodiff(network)
    for found in (totals, trace(network).totals):
        largest = {name: np.abs(found[f"d{name}"]).max() for name in ("W_out", "b_out", "b_g")}
        assert largest["b_out"] == pytest.approx(0.400, abs=5e-4)
        assert largest["W_out"] == pytest.approx(0.145, abs=1e-3)
        assert largest["b_g"] == pytest.approx(0.130, abs=1e-3)
        assert largest["b_g"] > max(np.abs(found[f"dW_{gate}"]).max() for gate in "zrg")
