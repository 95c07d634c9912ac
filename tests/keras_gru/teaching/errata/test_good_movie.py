"""Errata about the sentence of two words that a text takes from its first gate to its gradients."""

from copy import deepcopy

import numpy as np
import pytest

from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.worked_example import load_example
from tests import oracle
from tests.differences import derivative
from tests.keras_gru.plain_network import NUMPY, by_autodiff, forward, probe_shapes
from tests.keras_gru.teaching.errata.confirmation import confirms

GOOD_MOVIE = load_example("good_movie")
GOOD, BAD, MOVIE = np.eye(4)[:3]


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


@confirms("EX-12")
def test_descent_moves_a_state_against_its_gradient():
    network = GOOD_MOVIE.network()
    gradient = trace(network).steps[1]["dh_new"]
    assert np.all(gradient[:2] < 0)
    assert gradient[2] > 0
    np.testing.assert_allclose(by_autodiff(network)[0][1]["dh_new"], gradient, atol=1e-12)
    probes = {key: np.zeros(shape) for key, shape in probe_shapes(network).items()}
    _, loss = forward(network, probes, NUMPY)
    for unit, direction in ((0, 1), (1, 1), (2, -1)):
        probes[1, "h_new"][:] = 0.0
        probes[1, "h_new"][0, unit] = direction * 0.01
        assert forward(network, probes, NUMPY)[1] < loss
        probes[1, "h_new"][0, unit] = -direction * 0.01
        assert forward(network, probes, NUMPY)[1] > loss


@confirms("EX-5", "EX-13")
def test_the_loss_rises_from_the_first_word_to_the_second():
    example = GOOD_MOVIE
    network = example.network()
    by_trace = [float(step["loss"]) for step in trace(network).steps]
    by_tape = [float(step["loss"]) for step in by_autodiff(network)[0]]
    assert by_trace == pytest.approx(by_tape, abs=1e-14)
    assert by_trace == pytest.approx([0.6885, 0.7081], abs=5e-5)
    other = [
        float(step["loss"]) for step in trace(example.network("target_labelled_positive")).steps
    ]
    assert other == pytest.approx([0.698, 0.678], abs=5e-4)
    assert other == pytest.approx([-np.log(step["y"][1]) for step in by_autodiff(network)[0]])


@confirms("EX-14")
def test_the_transposed_output_matrix_has_a_row_per_unit():
    W_y = np.array(GOOD_MOVIE.content["network"]["output"]["W"])
    error = np.array([-0.507, 0.507])
    with pytest.raises(ValueError, match="mismatch"):
        W_y @ error
    np.testing.assert_allclose(W_y.T @ error, [-0.0507, -0.0507, 0.1521], atol=1e-12)
    by_tape = by_autodiff(GOOD_MOVIE.network())[0][1]["dh_output"]
    np.testing.assert_allclose(W_y.T @ error, by_tape, atol=5e-4)


@confirms("EX-18")
def test_the_state_that_enters_first_is_the_zero_one(good_movie):
    network, steps, by_tape = good_movie
    np.testing.assert_array_equal(network.initial_state, np.zeros(3))
    printed = [0.124, 0.089, 0.040]  # what the text calls h_0
    for found in (steps, by_tape):
        np.testing.assert_array_equal(found[0]["h"], np.zeros(3))
        np.testing.assert_allclose(found[0]["h_new"], printed, atol=6e-4)
        np.testing.assert_allclose(found[1]["h"], printed, atol=6e-4)


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
