"""The page of a trace as a file; what it computes is tested in tests/browser."""

import json
import re
from dataclasses import replace

import pytest

from keras_gru.__main__ import main
from keras_gru.teaching.network import parse_network
from keras_gru.teaching.trace_report import network_content, write_trace_page
from keras_gru.teaching.worked_example import example_paths, load_example

NETWORKS = [
    name
    for name in example_paths()
    if (network := load_example(name).network()) is not None and network.cell_name == "gru"
]


def data_of(path):
    page = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert page.count("<script") == 2
    return json.loads(found[1])


@pytest.mark.parametrize("name", NETWORKS)
def test_every_worked_example_has_its_page(name, tmp_path, capsys):
    path = tmp_path / "out.html"
    assert main(["trace", name, "--html", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    example, data = load_example(name), data_of(path)
    assert data["network"] == network_content(example.network())
    assert len(data["verdicts"]) == len(example.verdicts)
    assert [one["id"] for one in data["errata"]] == [one["id"] for one in example.errata]


def test_a_variant_has_its_page_and_another_cell_has_none(tmp_path, capsys):
    path = tmp_path / "out.html"
    assert main(["trace", "--cell", "gru", "--html", str(path)]) == 0
    expected = load_example("de_to_p").network("gru")
    assert data_of(path)["network"] == network_content(expected)
    assert main(["trace", "--cell", "lstm", "--html", str(path)]) == 2
    assert "--html: expected the cell 'gru', got 'lstm'" in capsys.readouterr().err


def test_what_a_text_prints_stands_at_its_place(tmp_path):
    example = load_example("good_movie")
    write_trace_page(example.network(), tmp_path / "out.html", example)
    claims = data_of(tmp_path / "out.html")["claims"]
    reset = [claim for claim in claims if claim["name"] == "r" and claim["step"] == 0]
    assert reset[0]["printed"] == [0.574, 0.55, 0.599]
    assert reset[0]["status"] == "agrees"


def test_names_cannot_end_the_script(tmp_path):
    hostile = "</script><script>alert(1)</script>"
    network = replace(load_example("good_movie").network(), tokens=(hostile, "b"))
    write_trace_page(network, tmp_path / "out.html")
    assert data_of(tmp_path / "out.html")["network"]["tokens"][0] == hostile


def test_a_page_is_whole_or_not_there(tmp_path):
    network = load_example("good_movie").network()
    with pytest.raises(OSError, match="No such file"):
        write_trace_page(network, tmp_path / "nowhere" / "out.html")
    broken = replace(network, learning_rate=float("nan"))
    with pytest.raises(ValueError, match="Out of range float"):
        write_trace_page(broken, tmp_path / "out.html")
    assert list(tmp_path.iterdir()) == []


def test_weights_are_those_of_the_file(tmp_path):
    weights = {"kernel": [[1, 2, 3]], "recurrent_kernel": [[4, 5, 6]], "bias": [7, 8, 9]}
    content = {"update_gate": "keep", "reset_after": False, "weights": weights, "inputs": [[1]]}
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert main(["trace", str(tmp_path / "mine.json"), "--html", str(tmp_path / "o.html")]) == 0
    found = data_of(tmp_path / "o.html")["network"]
    assert found == network_content(parse_network(content))
    assert found["kernel"] == {"z": [[1.0]], "r": [[2.0]], "g": [[3.0]]}
