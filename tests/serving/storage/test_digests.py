"""Digests of a version's files, compared with sha256sum, and files changed by hand."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from gru_serving.client import connect
from gru_serving.commands.publish import main as publish
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.errors import Code, RefusedVersion
from gru_serving.storage.digests import FILE, check_digests, digest_of, has_digests, write_digests
from tests.serving.servers import running, wait_until

ONE = {"x": np.ones((1, 3), np.float32), "b": np.zeros((1, 1), np.float32)}


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x20
    path.write_bytes(bytes(content))


def test_the_list_is_that_of_sha256sum(version):
    content = json.loads((version / FILE).read_text("utf-8"))
    assert content["algorithm"] == "sha256"
    names = {"saved_model.pb", "fingerprint.pb", "assets/vocabulary.txt"}
    variables = {"variables/variables.index", "variables/variables.data-00000-of-00001"}
    assert content["files"].keys() == names | variables
    for name, entry in content["files"].items():
        told = subprocess.run(["sha256sum", version / name], capture_output=True, check=True)
        assert entry["sha256"] == told.stdout.split()[0].decode()
        assert entry["size"] == (version / name).stat().st_size
    assert check_digests(version) == sum(entry["size"] for entry in content["files"].values())


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


def make_directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (flip, "the file was altered since the version was written"),
        (cut, r"expected \d+ bytes by .*; got \d+"),
        (lambda path: path.unlink(), "cannot be read: No such file"),
        (make_pipe, "cannot be read: not a file"),
        (make_directory, "cannot be read: "),
    ],
)
@pytest.mark.parametrize(
    "name", ["saved_model.pb", "variables/variables.index", "assets/vocabulary.txt"]
)
def test_what_is_harmed_is_named_and_not_loaded(version, name, harm, words):
    harm(version / name)
    with pytest.raises(RefusedVersion, match=words) as caught:
        VersionLoader(LoadOptions())(version)
    assert str(version / name) in str(caught.value)
    assert caught.value.code is Code.DATA_LOSS


@pytest.mark.parametrize(
    "name", ["saved_model.pbtxt", "variables/more", "assets/x/y", "model.tflite"]
)
def test_what_tensorflow_may_read_may_not_be_added(version, name):
    (version / name).parent.mkdir(exist_ok=True)
    (version / name).touch()
    with pytest.raises(RefusedVersion, match=f"{name}: not listed in"):
        check_digests(version)


@pytest.mark.parametrize(
    "name", ["assets.extra/tf_serving_warmup_requests", "batching_params.pbtxt", ".DS_Store"]
)
def test_what_operators_add_later_may_be_added_but_not_altered(version, name):
    (version / name).write_text("later")
    check_digests(version)
    write_digests(version)
    (version / name).write_text("again")
    with pytest.raises(RefusedVersion, match=f"{name}: expected the SHA-256 digest"):
        check_digests(version)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("[]", "expected the algorithm 'sha256'; got None"),
        ('{"algorithm": "md5"}', "expected the algorithm 'sha256'; got 'md5'"),
        ('{"algorithm": "sha256", "files": {}}', "expected files with their digests"),
        ('{"algorithm": "sha256", "files": {"../x": {}}}', "expected paths inside the version"),
        ('{"algorithm": "sha256", "files": {"/etc/passwd": {}}}', "expected paths inside"),
        ('{"algorithm": "sha256", "files": {"x": {"size": 1}}}', "expected size and sha256 of 'x'"),
        ('{"algorithm": "sha256", "files": {"x": 7}}', "expected size and sha256 of 'x'; got 7"),
    ],
)
def test_a_list_that_is_none_refuses_the_version(version, text, words):
    (version / FILE).write_text(text)
    with pytest.raises(RefusedVersion, match=words):
        VersionLoader(LoadOptions())(version)


def test_a_list_that_leads_nowhere_counts_as_one(version):
    (version / FILE).unlink()
    assert not has_digests(version)
    (version / FILE).symlink_to("nowhere")
    with pytest.raises(RefusedVersion, match="cannot be read"):
        VersionLoader(LoadOptions())(version)


def test_of_a_file_of_the_wrong_size_nothing_is_read(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert digest_of(tmp_path / "sparse", at_most=7).size == 1 << 40


def test_files_that_change_during_the_load_do_not_serve(version, monkeypatch):
    loader = VersionLoader(LoadOptions())
    monkeypatch.setattr(
        "gru_serving.engine.version_loader.replay", lambda *_: flip(version / "saved_model.pb")
    )
    with pytest.raises(Exception, match="its files changed while it was loaded"):
        loader(version)


@pytest.mark.slow
def test_a_server_ends_what_was_altered_serves_the_rest_and_what_is_mended(
    models, version, tmp_path
):
    shutil.copytree(models / "affine" / "1", version.parent / "3")
    write_digests(version.parent / "3")
    altered = version.parent / "3" / "variables" / "variables.data-00000-of-00001"
    good = altered.read_bytes()
    flip(altered)
    flags = ("--model_name=m", f"--model_base_path={version.parent}", "--trial_load=auto")
    with running(tmp_path / "log", *flags) as server, connect(server.rest) as client:
        states = {one.version: one for one in client.status("m")}
        assert {number: one.state for number, one in states.items()} == {1: "AVAILABLE", 3: "END"}
        assert states[3].error_code == "DATA_LOSS"
        assert str(altered) in states[3].error_message
        altered.write_bytes(good)
        wait_until(
            lambda: {one.version: one.state for one in client.status("m")}[3] == "AVAILABLE", server
        )
        assert client.predict(ONE, "m")["y"].tolist() == [[9, 12]]
    text = (tmp_path / "log").read_text()
    assert "Checked the files of" in text
    assert "Tried" not in text  # digests are enough


@pytest.mark.long
def test_exports_and_what_is_published_of_them_have_digests(exports, tmp_path, capsys):
    exported = exports.version("one")
    assert check_digests(exported) > 0
    listed = json.loads((exported / FILE).read_text("utf-8"))["files"]
    assert {"assets.extra/golden.json", "assets.extra/tf_serving_warmup_requests"} <= listed.keys()
    assert publish([str(exported), "--to", str(tmp_path / "to")]) == 0
    assert (tmp_path / "to" / "1" / FILE).read_bytes() == (exported / FILE).read_bytes()
    # A version damaged on its way is not published.
    harmed = shutil.copytree(exported, tmp_path / "harmed")
    flip(harmed / "saved_model.pb")
    assert publish([str(harmed), "--to", str(tmp_path / "to")]) == 2
    assert "saved_model.pb: expected the SHA-256 digest" in capsys.readouterr().err
    # A version without a list gets one, after its golden requests were answered.
    plain = shutil.copytree(exported, tmp_path / "plain")
    (plain / FILE).unlink()
    assert publish([str(plain), "--to", str(tmp_path / "to")]) == 0
    assert (tmp_path / "to" / "2" / FILE).read_bytes() == (exported / FILE).read_bytes()
    assert publish([str(plain), "--to", str(tmp_path / "to"), "--unverified"]) == 0
    assert not has_digests(tmp_path / "to" / "3")
