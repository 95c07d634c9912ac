import json
import re
from dataclasses import fields
from itertools import islice

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru.__main__ import _parser, main
from keras_gru.teaching.comparison import (
    ARCHITECTURES,
    ComparisonConfig,
    Run,
    adding_batch,
    adding_run,
    build_model,
    context_baseline,
    corpus_run,
    gradient_flow,
    parameters,
    read_corpus,
    run_comparison,
    train,
    units_with,
    word_run,
)
from keras_gru.teaching.comparison_report import findings, markdown

TEXT = "the quick brown fox jumps over the lazy dog, and the dog sleeps.\n" * 80


def silent(name, done, total, loss):
    pass


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_parameters_are_those_of_keras(name):
    cell = ARCHITECTURES[name](5)
    cell.build((None, 3))
    assert cell.count_params() == parameters(name, 3, 5)
    budget = parameters("GRU", 3, 16)
    units = units_with(name, 3, budget)
    assert parameters(name, 3, units) <= budget < parameters(name, 3, units + 1)


@pytest.mark.parametrize("length", [2, 3, 10])
def test_adding_targets_are_the_sum_of_the_marked_numbers(length):
    inputs, targets = adding_batch(np.random.default_rng(0), 50, length)
    assert inputs.shape == (50, length, 2)
    half = length // 2
    assert np.all(inputs[:, :half, 1].sum(axis=1) == 1)
    assert np.all(inputs[:, half:, 1].sum(axis=1) == 1)
    np.testing.assert_allclose(
        (inputs[..., 0] * inputs[..., 1]).sum(axis=1), targets[:, 0], rtol=1e-6
    )
    assert len(set(inputs[:, :, 1].argmax(axis=1))) == half


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_gradient_flow_is_the_derivative_by_each_state(name):
    keras.utils.set_random_seed(3)
    model = build_model(name, 2, 3, 1, sequences=False)
    model.set_weights([np.random.default_rng(1).normal(size=w.shape) for w in model.get_weights()])
    inputs, targets = adding_batch(np.random.default_rng(2), 4, 5)
    flow = gradient_flow(model, inputs, targets)
    cell, output = model.layers[0].cell, model.layers[-1]

    def remaining_loss(state, start):
        for t in range(start, 5):
            _, state = cell(tf.constant(inputs[:, t]), state)
        return tf.reduce_mean((output(state[0]) - targets) ** 2)

    state, norms = cell.get_initial_state(batch_size=4), []
    for t in range(5):
        state = state if isinstance(state, list | tuple) else [state]
        _, state = cell(tf.constant(inputs[:, t]), state)
        state = [tf.constant(part) for part in state]
        with tf.GradientTape() as tape:
            tape.watch(state)
            loss = remaining_loss(state, t + 1)
        parts = [part for part in tape.gradient(loss, state) if part is not None]
        norms.append(np.mean(np.linalg.norm(np.concatenate(parts, axis=1), axis=1)))
    np.testing.assert_allclose(flow, np.array(norms) / norms[-1], rtol=1e-4)


def test_context_baseline_counts():
    text = "ab" * 500 + "ba" * 50
    accuracy, bits = context_baseline("ab" * 500, 1)
    assert accuracy == 1.0
    assert bits < 0.02
    accuracy, _ = context_baseline("ab" * 500, 0)
    assert accuracy == pytest.approx(0.5, abs=0.02)
    accuracy, bits = context_baseline(text, 1)
    assert 0 < accuracy < 1
    uniform = "".join(np.random.default_rng(0).choice(list("abcd"), 20_000))
    for order in range(3):
        assert context_baseline(uniform, order)[1] == pytest.approx(2.0, abs=0.03)


def test_training_stops_when_solved_and_counts_updates():
    model = build_model("GRU", 2, 4, 1, sequences=False)
    inputs, targets = adding_batch(np.random.default_rng(0), 8, 4)
    told = []
    config = ComparisonConfig(updates=40, learning_rate=0.05)
    losses, seconds = train(
        model,
        iter(lambda: (inputs, targets), None),
        lambda a, b: tf.reduce_mean((a - b) ** 2),
        config,
        lambda losses: len(losses) >= 25,
        lambda done, loss: told.append((done, loss)),
    )
    assert len(losses) == 25
    assert losses[-1] < losses[0]
    assert [done for done, _ in told] == [10, 20]
    assert told[0][1] == pytest.approx(np.mean(losses[:10]))
    assert seconds > 0


@pytest.mark.slow
def test_a_gru_learns_the_word_and_a_memoryless_cell_cannot(monkeypatch):
    config = ComparisonConfig(updates=400, learning_rate=0.05)
    run = word_run(config, "GRU", 0, silent)
    assert run.accuracy == 1.0
    assert run.solved_after == run.updates <= 400

    def memoryless(units):
        cell = keras.layers.SimpleRNNCell(units, recurrent_initializer="zeros")
        cell.build((None, 4))
        cell.recurrent_kernel.trainable = False
        return cell

    monkeypatch.setitem(ARCHITECTURES, "vanilla RNN", memoryless)
    run = word_run(config, "vanilla RNN", 0, silent)
    assert run.accuracy == 0.75
    assert run.solved_after is None


def test_a_gru_solves_short_additions():
    run = adding_run(
        ComparisonConfig(updates=600, units=16, learning_rate=0.02), "GRU", 0, 4, silent
    )
    assert run.solved_after is not None
    assert np.mean(run.losses[-50:]) < 0.01
    assert len(run.gradient_before) == len(run.gradient_after) == 4
    assert run.gradient_after[-1] == 1.0


@pytest.mark.slow
def test_a_corpus_run_is_judged_on_held_out_text():
    config = ComparisonConfig(updates=150, units=24, learning_rate=0.02, batch_size=16)
    run = corpus_run(config, "GRU", 0, TEXT, silent)
    assert run.parameters == parameters("GRU", len(set(TEXT)), 24) + 25 * len(set(TEXT))
    assert run.bits < context_baseline(TEXT, 1)[1]
    assert run.accuracy > context_baseline(TEXT, 1)[0]


def test_corpus_files_are_checked(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("too short")
    with pytest.raises(ValueError, match=r"corpus: expected 5,000 characters or more, got 9"):
        read_corpus(path)
    path.write_bytes(b"\xff\xfe" * 5000)
    with pytest.raises(ValueError, match=r"corpus: expected UTF-8 text in .*short.txt, got"):
        read_corpus(path)
    path.write_text(TEXT)
    assert read_corpus(path) == TEXT
    assert len(read_corpus(None)) > 20_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lengths": (1,)}, r"lengths: expected numbers of 2 or more, got \(1,\)"),
        ({"lengths": ()}, r"lengths: expected numbers of 2 or more, got \(\)"),
        ({"updates": 0}, r"updates: expected 1 or more, got 0"),
        ({"match": "time"}, r"match: expected units or parameters, got 'time'"),
        ({"learning_rate": 0.0}, r"learning_rate: expected 0 < rate < 1, got 0.0"),
    ],
)
def test_bad_configurations_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ComparisonConfig(**options)


def run_with(name, solved, task="adding", **values):
    return Run(task, name, 0, 10, 4, 100, 20, 1.0, [0.1] * 20, solved_after=solved, **values)


def test_findings_say_where_the_gru_is_not_better():
    assert findings(
        [run_with("GRU", 300), run_with("LSTM", 500), run_with("vanilla RNN", None)]
    ) == [
        "Adding, 10 steps: solved by GRU after 300, LSTM after 500 updates; not by vanilla RNN. "
        "The GRU needed the fewest updates."
    ]
    assert "no advantage over: LSTM" in findings([run_with("GRU", 300), run_with("LSTM", 200)])[0]
    assert "The GRU did not solve it" in findings([run_with("GRU", None), run_with("LSTM", 9)])[0]
    two_of_three = [run_with("GRU", 300), run_with("GRU", 100), run_with("GRU", None)]
    assert "GRU after 200" in findings([*two_of_three, run_with("LSTM", None)])[0]
    corpus = [run_with("GRU", None, "corpus", bits=2.5), run_with("MGU", None, "corpus", bits=2.4)]
    assert findings(corpus) == [
        "Corpus, bits per character: MGU 2.400, GRU 2.500. The GRU has no advantage over: MGU."
    ]
    before, after = {"gradient_before": [1e-9, 1.0]}, {"gradient_after": [0.5, 1.0]}
    flow = [run_with("GRU", 9, **before, **after), run_with("LSTM", None, **after, **before)]
    flow[1].gradient_after = [0.25, 1.0]
    start = "Gradient left after 9 steps,"
    assert findings(flow)[1:] == [
        f"{start} before training (1 at the last state): LSTM 1e-09, GRU 1e-09.",
        f"{start} after training (1 at the last state): GRU 0.5, LSTM 0.25.",
    ]
    assert "GRU | 4 | 100" in markdown(ComparisonConfig(), [run_with("GRU", 300)])


@pytest.mark.slow
def test_the_command_writes_report_runs_and_pictures(tmp_path, capsys, monkeypatch):
    for name in ("LSTM", "MGU", "coupled GRU"):
        monkeypatch.delitem(ARCHITECTURES, name)
    corpus = tmp_path / "text.txt"
    corpus.write_text(TEXT)
    folder = tmp_path / "out"
    arguments = ["compare", "--lengths", "3", "--updates", "3", "--units", "2"]
    assert main([*arguments, "--corpus", str(corpus), "--output", str(folder)]) == 0
    assert "wrote" in capsys.readouterr().out
    names = {path.name for path in folder.iterdir()}
    assert names == {"report.md", "runs.json", "adding.png", "gradient_flow.png", "characters.png"}
    runs = json.loads((folder / "runs.json").read_text())["runs"]
    assert len(runs) == 3 * len(ARCHITECTURES)
    report = (folder / "report.md").read_text()
    for name in ARCHITECTURES:
        assert len(re.findall(rf"\| {name} \|", report)) == 3
    for picture in folder.glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_an_interrupted_command_reports_what_is_complete(tmp_path, monkeypatch, capsys):
    def interrupted(config, tasks, progress):
        yield from islice(run_comparison(config, ("word",), progress), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_gru.teaching.comparison.run_comparison", interrupted)
    arguments = ["compare", "--updates", "2", "--tasks", "word", "--output", str(tmp_path / "out")]
    assert main(arguments) == 130
    assert len(json.loads((tmp_path / "out" / "runs.json").read_text())["runs"]) == 2
    capsys.readouterr()


def test_bad_options_are_named(tmp_path, capsys):
    assert main(["compare", "--lengths", "1", "--output", str(tmp_path)]) == 2
    assert "lengths: expected numbers of 2 or more" in capsys.readouterr().err
    assert main(["compare", "--corpus", str(tmp_path / "none.txt"), "--output", str(tmp_path)]) == 2
    assert "none.txt" in capsys.readouterr().err


def test_defaults_of_the_command_are_those_of_the_configuration():
    options = vars(_parser().parse_args(["compare"]))
    config = ComparisonConfig()
    for field in fields(config):
        if field.name != "batch_size":
            value = options[field.name]
            expected = getattr(config, field.name)
            assert (tuple(value) if isinstance(value, list) else value) == expected, field.name
