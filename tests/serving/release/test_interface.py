"""A version that would break the clients of the one before it is refused."""

import json
import shutil
import subprocess
import sys

import pytest

from gru_serving.__main__ import main
from gru_serving.conformance.models import save_affine, save_half_plus_two
from gru_serving.protos.meta_graph_pb2 import SavedModel
from gru_serving.release.interface import MODEL_CARD, Interface
from tests.serving.release.rollout_config import write

FLOAT, STRING = 1, 7
TEXT = {
    "serving_default": ({"text": (STRING, (-1,))}, {"scores": (FLOAT, (-1, 2))}),
    "step": ({"state": (FLOAT, (-1, 25))}, {"state": (FLOAT, (-1, 25))}),
    "gates": ({"text": (STRING, (-1,))}, {"update_gate": (FLOAT, (-1, -1, 25))}),
}
CARD = {"task": "sentiment", "classes": ["negative", "positive"]}


def version(folder, signatures=None, card=None):
    """A version of which there are the signatures and the card alone."""
    graph = SavedModel()
    meta = graph.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    for name, sides in (TEXT | (signatures or {})).items():
        for side, tensors in zip(("inputs", "outputs"), sides or (), strict=sides is not None):
            for alias, (dtype, shape) in tensors.items():
                info = getattr(meta.signature_def[name], side)[alias]
                info.dtype = dtype
                for size in shape:
                    info.tensor_shape.dim.add().size = size
    (folder / MODEL_CARD).parent.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(graph.SerializeToString())
    (folder / MODEL_CARD).write_text(json.dumps(CARD | (card or {})))
    return folder


def broken(tmp_path, signatures=None, card=None):
    old = Interface.read(version(tmp_path / "1"))
    return old.broken_by(Interface.read(version(tmp_path / "2", signatures, card)))


@pytest.mark.parametrize(
    ("signatures", "card"),
    [
        ({}, {}),
        ({"more": TEXT["gates"]}, {"vocabulary_size": 9}),
        ({"step": ({"state": (FLOAT, (-1, 33))}, {"state": (FLOAT, (-1, 33))})}, {}),
        ({"gates": ({"text": (STRING, (-1,))}, {"update_gate": (FLOAT, (-1, -1, 64))})}, {}),
    ],
)
def test_what_breaks_no_client(tmp_path, signatures, card):
    assert broken(tmp_path, signatures, card) == []


@pytest.mark.parametrize(
    ("signatures", "card", "said"),
    [
        ({"step": None}, {}, "signature step: gone"),
        (
            {"serving_default": ({"text": (STRING, (-1,))}, {"scores": (FLOAT, (-1, 3))})},
            {},
            "signature serving_default: output scores was float (?, 2) and is float (?, 3)",
        ),
        (
            {"serving_default": ({"text": (FLOAT, (-1,))}, {"scores": (FLOAT, (-1, 2))})},
            {},
            "signature serving_default: input text was string (?) and is float (?)",
        ),
        ({}, {"classes": ["positive", "negative"]}, "the classes: their order changed from "
         "negative, positive to positive, negative"),
        ({}, {"classes": ["negative", "neutral"]}, "the classes: positive gone, neutral new"),
        ({}, {"task": "language"}, "the task: sentiment became language"),
    ],
)  # fmt: skip
def test_what_breaks_clients_is_named(tmp_path, signatures, card, said):
    assert broken(tmp_path, signatures, card) == [said]


def test_an_input_that_clients_do_not_send(tmp_path):
    inputs = {"text": (STRING, (-1,)), "threshold": (FLOAT, ())}
    found = broken(tmp_path, {"serving_default": (inputs, {"scores": (FLOAT, (-1, 2))})})
    assert found == ["signature serving_default: input threshold is new"]


def test_publish_asks_for_a_flag(tmp_path, capsys):
    save_affine(tmp_path / "models" / "1")
    save_half_plus_two(tmp_path / "other" / "1")
    command = ["publish", str(tmp_path / "other"), "--to", str(tmp_path / "models"), "--unverified"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "clients would not find what version 1 has:\n  signature" in said
    assert "--allow-interface-change" in said
    assert not (tmp_path / "models" / "2").exists()
    assert main([*command, "--allow-interface-change"]) == 0
    assert (tmp_path / "models" / "2" / "saved_model.pb").is_file()


@pytest.mark.slow
def test_export_refuses_the_run_of_other_classes(exports, tmp_path, capsys):
    shutil.copytree(exports.root / "one" / "1", tmp_path / "m" / "1")
    card = tmp_path / "m" / "1" / MODEL_CARD
    card.write_text(json.dumps(json.loads(card.read_text()) | {"classes": ["ham", "spam"]}))
    assert main(["export", str(exports.runs["one"].path), "--to", str(tmp_path / "m")]) == 2
    said = capsys.readouterr().err
    assert "the classes: ham, spam gone, negative, positive new" in said
    assert [child.name for child in (tmp_path / "m").iterdir()] == ["1"]


@pytest.mark.parametrize("command", ["promote", "label"])
def test_a_label_stays_where_clients_find_what_they_rely_on(tmp_path, capsys, command):
    save_affine(tmp_path / "m" / "1")
    save_half_plus_two(tmp_path / "m" / "2")
    config = write(tmp_path / "models.config", tmp_path)
    common = ["--config", str(config), "--model", "m", "--offline"]
    assert main(["label", *common, "stable=1"]) == 0
    move = [*(["--to", "2"] if command == "promote" else ["stable=2"])]
    before = config.read_text()
    assert main([command, *common, *move]) == 1
    assert "label stable, version 2: its clients would not find" in capsys.readouterr().err
    assert config.read_text() == before
    assert main([command, *common, *move, "--allow-interface-change"]) == 0
    assert "stable 1 -> 2" in capsys.readouterr().out


def test_a_first_label_is_compared_with_the_version_that_serves(tmp_path, capsys):
    save_affine(tmp_path / "m" / "1")
    save_half_plus_two(tmp_path / "m" / "2")
    config = write(tmp_path / "models.config", tmp_path)
    assert main(["promote", "--config", str(config), "--model", "m", "--offline"]) == 1
    assert "what version 1 has" in capsys.readouterr().err


def test_hostile_names_are_shown_and_do_nothing(tmp_path, capsys):
    version(tmp_path / "m" / "1")
    version(tmp_path / "other" / "1", card={"classes": ["\x1b[2J\x1b]0;owned\x07", "a\nb"]})
    command = ["publish", str(tmp_path / "other"), "--to", str(tmp_path / "m"), "--unverified"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert not set(said) & set("\x1b\x07")
    assert len(said.splitlines()) == 3
    assert r"\u001b[2J\u001b]0;owned\u0007, a\nb new" in said


def test_rollback_says_who_still_gets_what(tmp_path, capsys):
    save_affine(tmp_path / "m" / "1")
    save_affine(tmp_path / "m" / "2", 2.0)
    config = write(tmp_path / "models.config", tmp_path)
    common = ["--config", str(config), "--model", "m", "--offline"]
    assert main(["label", *common, "stable=1"]) == 0
    assert main(["promote", *common]) == 0
    capsys.readouterr()
    assert main(["rollback", *common]) == 0
    printed = capsys.readouterr()
    assert printed.out == "m: stable 2 -> 1\n"
    assert "requests without label or version still go to version 2" in printed.err
    assert f"take it out of model_version_policy in {config}" in printed.err


def test_interfaces_are_read_without_tensorflow(tmp_path):
    folder = version(tmp_path / "1")
    code = (
        "import sys; from pathlib import Path; from gru_serving.release.interface import Interface;"
        f"Interface.read(Path({str(folder)!r})); assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
