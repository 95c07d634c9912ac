import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from keras_gru.__main__ import main
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace import last_paths, trace
from keras_gru.teaching.trace_report import Layout, gate_bar, render, signed_bar
from keras_gru.teaching.worked_example import load_example
from tests.keras_gru.teaching.random_networks import NETWORKS, random_fields


def printed(network, width=120, decimals=4):
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(render(trace(network), Layout(width, decimals)))
    return capture.get()


def numbers_after(label, text):
    line = next(line for line in text.splitlines() if label in line)
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line.split(label)[1])]


def test_a_reader_finds_every_stage_of_the_two_word_example():
    network = load_example("good_movie").network()
    found = trace(network)
    backward = printed(network)
    forward, backward = backward.split("Backward, step 1")
    second = forward.split('Forward, step 1: "movie"')[1]
    for label, name in (
        ("σ(a_z)", "z"),
        ("σ(a_r)", "r"),
        ("φ(a_g)", "g"),
        ("new state h′", "h_new"),
    ):
        np.testing.assert_allclose(numbers_after(label, second), found.steps[1][name], atol=5e-5)
    np.testing.assert_allclose(
        numbers_after("prediction y", second), found.steps[1]["y"], atol=5e-5
    )
    assert numbers_after("loss of this step", second) == [0.7081]
    for path in ("direct", "candidate"):
        expected = found.steps[1][f"dh_{path}"]
        np.testing.assert_allclose(numbers_after(f"{path} path ", backward), expected, atol=5e-5)
    assert "(21) new V" in backward
    for row in found.totals["new_W_out"]:
        assert re.search(r"\s+".join(f"{value:.5f}" for value in row), backward)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("width", [50, 80, 200])
def test_every_kind_of_network_fits_the_terminal(name, width):
    text = printed(parse_network(NETWORKS[name]), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.count("Backward, step") == len(NETWORKS[name]["inputs"])
    first = trace(parse_network(NETWORKS[name])).steps[0]["h_new"][0]
    assert numbers_after("new state h′", text)[0] == pytest.approx(first, abs=5e-5)


@pytest.mark.parametrize("name", ["rnn", "lstm", "keep_before", "coupled_gru_keep"])
def test_the_table_of_deltas_and_the_paths_are_those_of_the_trace(name):
    network = parse_network(NETWORKS[name])
    found = trace(network)
    text = printed(network, 120)
    deltas = text.split("Gradients of the states")[1].split("Paths from")[0]
    for quantity, label in (("dh_output", "own loss"), ("dh_future", "later losses")):
        rows = [line for line in deltas.splitlines() if label in line]
        for row, step in zip(rows, reversed(found.steps), strict=True):
            np.testing.assert_allclose(numbers_after(label, row), step[quantity], atol=5e-5)
    split = last_paths(found)
    paths = text.split("Paths from")[1]
    for path in split.paths:
        between = split.step - path.step
        way = "direct" if between == 0 else f"over {between} step"
        length = np.linalg.norm(path.jacobian, 2)
        assert numbers_after(f"k = {path.step}: {way}", paths)[0] == pytest.approx(length, abs=5e-5)
    symbol = network.cell.symbol(f"U_{network.blocks[0]}")
    section = paths.split(f"δ{symbol} from the loss")[1]
    total = sum(split.shares(f"U_{network.blocks[0]}"))
    for row in total:
        assert re.search(r"\s+".join(f"{value:.5f}" for value in row + 0.0), section)


def test_the_note_says_why_the_target_stands_under_negative(capsys):
    assert main(["trace", "good_movie"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert 'Why the target stands under "negative"' in said
    assert main(["trace", "good_movie", "--variant", "target_labelled_positive"]) == 0
    other = " ".join(capsys.readouterr().out.split())
    assert "Why the target" not in other
    assert "what the labels mean" in other


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "mgu", "minimal_gru", "coupled_gru"])
def test_the_command_takes_a_cell(cell, capsys):
    assert main(["trace", "--cell", cell, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    variant = None if cell == "rnn" else cell
    network = load_example("de_to_p").network(variant)
    assert network.cell_name == cell
    found = trace(network)
    np.testing.assert_array_equal(content["steps"][1]["h_new"], found.steps[1]["h_new"])
    split = last_paths(found)
    weight = f"U_{network.blocks[0]}"
    assert [path["from"] for path in content["paths"]["paths"]] == [1, 0]
    shares = [path[f"d{weight}"] for path in content["paths"]["paths"]]
    np.testing.assert_allclose(shares, split.shares(weight))


def test_units_without_room_are_counted():
    network = parse_network(random_fields(U=12, D=9))
    text = printed(network, 100)
    shown = text.splitlines()[text.splitlines().index("") + 2]
    units, more = len(re.findall(r"unit \d+", shown)), int(re.search(r"… (\d+) more", shown)[1])
    assert units + more == 12
    assert len(numbers_after("new state h′", text)) == units


def test_bars_are_as_long_as_their_values():
    assert gate_bar(0.0, 4) == "░░░░"
    assert gate_bar(0.5, 4) == "██░░"
    assert gate_bar(1.0, 4) == "████"
    assert signed_bar(0.5, 4) == "    │██  "
    assert signed_bar(-1.5, 4) == "████│    "


def test_trace_command_prints_json(capsys):
    assert main(["trace", "good_movie", "--json", "--variant", "mean_loss"]) == 0
    content = json.loads(capsys.readouterr().out)
    found = trace(load_example("good_movie").network("mean_loss"))
    np.testing.assert_array_equal(content["steps"][1]["dh"], found.steps[1]["dh"])
    np.testing.assert_array_equal(content["totals"]["new_W_out"], found.totals["new_W_out"])


def test_trace_command_reads_a_file(capsys, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(NETWORKS["replace_after"]))
    assert main(["trace", str(path), "--decimals", "6"]) == 0
    out = capsys.readouterr().out
    assert "(4b, replace)" in out
    value = trace(parse_network(NETWORKS["replace_after"])).steps[0]["h_new"][0]
    assert f"{value:.6f}" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trace", "bad_movie"], "network: expected a JSON file or one of activation_tables, "),
        (["trace", "gradient_decay"], "network: 'gradient_decay' is arithmetic without a network"),
        (["trace", "good_movie", "--variant", "x"], "variant: expected one of mean_loss, target"),
        (
            ["trace", "walk_through", "--variant", "x"],
            "variant: walk_through has no variants, got 'x'",
        ),
        (["trace", "good_movie", "--cell", "lstm"], "--cell: expected a cell that good_movie has"),
        (["trace", "de_to_p", "--cell", "gru", "--variant", "deep"], "--cell: expected this or"),
        (["trace", "--exercise", "0"], "--exercise: expected 1 blank or more, got 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_bad_file_is_named(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**NETWORKS["relu"], "update_gate": "drop"}))
    assert main(["trace", str(path)]) == 2
    assert "update_gate: expected one of keep, replace, got 'drop'" in capsys.readouterr().err


def test_list_command_counts_the_lines(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    example = load_example("good_movie")
    line = next(line for line in out.splitlines() if line.startswith("good_movie"))
    assert int(line.split()[1]) == len(example.verdicts)
    texts = " ".join(out.split("The texts")[1].split("Variants")[0].split())
    assert "gru_architecture GRU Architecture: " in texts
    variants = out.split("Variants")[1]
    assert "target_labelled_positive" in variants
    assert "lstm_sigmoid" in variants


def test_the_committed_document_is_up_to_date(tmp_path, capsys):
    path = tmp_path / "worked_examples.md"
    assert main(["audit", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    committed = Path(__file__).parents[3] / "docs" / "worked_examples.md"
    assert path.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["worked_examples.md"]
    assert main(["audit", str(tmp_path / "missing" / "x.md")]) == 2


GUIDE = Path(__file__).parents[3] / "docs" / "trace.md"


def test_the_guide_names_every_quantity():
    named = set(re.findall(r"`(\w+)`", GUIDE.read_text(encoding="utf-8")))
    for fields in NETWORKS.values():
        found = trace(parse_network(fields))
        names = {name for step in found.steps for name in step} | set(found.totals)
        assert {name for name in names if not name.startswith("new_")} <= named


def test_the_network_of_the_guide_runs(tmp_path, capsys):
    example = re.search(r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
    path = tmp_path / "network.json"
    path.write_text(example)
    assert main(["trace", str(path)]) == 0
    assert 'Backward, step 1: "second"' in capsys.readouterr().out


@pytest.mark.slow
def test_ends_quietly_when_nobody_reads_on():
    command = [sys.executable, "-m", "keras_gru", "trace", "good_movie", "--json"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 128 + signal.SIGPIPE
    assert "keras_gru: error" not in said
    assert "BrokenPipe" not in said
