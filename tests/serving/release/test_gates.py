"""Promotions that are checked and watched: bad versions are put back, and no request fails."""

import json
import shutil
import threading
from contextlib import contextmanager

import pytest
import tensorflow as tf

from gru_serving.__main__ import main
from gru_serving.client import connect
from gru_serving.engine.golden import write_golden
from gru_serving.export.run import export_run
from tests.made_once import made_once, own_copy
from tests.serving.servers import running

CONFIG = """
model_config_list {{ config {{
  name: "m" base_path: "{base}" model_platform: "tensorflow"
  model_version_policy {{ specific {{ versions: 1 }} }}
  version_labels {{ key: "stable" value: 1 }}
}} }}
"""


@pytest.fixture(scope="module")
def classifiers(exports, tmp_path_factory):
    """1: good. 2: the same run, always of one opinion. 3: good again. 4: not as its golden file."""
    made = made_once("gates", lambda root: make_versions(exports, root))
    return own_copy(made, tmp_path_factory) / "m"


def make_versions(exports, root):
    import keras

    base = root / "m"
    run = exports.runs["one"].path
    shutil.copytree(exports.version("one"), base / "1")
    biased = root / "biased"
    shutil.copytree(run, biased)
    model = keras.models.load_model(biased / "model.keras", compile=False)
    bias = next(v for v in reversed(model.trainable_variables) if v.shape == (2,))
    bias.assign([30.0, -30.0])
    model.save(biased / "model.keras")
    manifest = json.loads((biased / "manifest.json").read_text())
    manifest["model.keras"] = (biased / "model.keras").stat().st_size
    (biased / "manifest.json").write_text(json.dumps(manifest))
    export_run(biased, base)
    for number in (3, 4):
        shutil.copytree(base / "1", base / str(number))
    golden = base / "4" / "assets.extra" / "golden.json"
    golden.write_bytes((base / "2" / "assets.extra" / "golden.json").read_bytes())
    (base / "4" / "assets.extra" / "digests.json").unlink()


@contextmanager
def site(base, directory):
    """A server whose config labels version 1, with requests to the label all the time."""
    config = directory / "models.config"
    config.write_text(CONFIG.format(base=base))
    logs = directory / "logs"
    flags = (
        "--allow_version_labels_for_unavailable_models",
        f"--prediction_log_directory={logs}",
        "--prediction_log_sampling_rate=1",
    )
    with running(directory / "log", f"--model_config_file={config}", *flags) as server:
        yield server, ["--config", str(config), "--model", "m", "--url", server.grpc], logs


@contextmanager
def clients(url, texts):
    """Two clients that ask the label without a pause; their answers and their errors."""
    stop, asked, errors = threading.Event(), [], []

    def ask(which):
        with connect(url) as client:
            place = which
            while not stop.is_set():
                batch = [texts[(place + k) % len(texts)] for k in range(4)]
                place += 4
                try:
                    asked.append(client.predict({"text": batch}, "m", label="stable")["label"])
                except Exception as error:
                    errors.append(error)

    threads = [threading.Thread(target=ask, args=(which,)) for which in (0, len(texts) // 2)]
    for thread in threads:
        thread.start()
    try:
        yield asked, errors
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def stable(server):
    with connect(server.grpc) as client:
        return client.metadata("m", label="stable").version


def promote(capsys, asked, *more):
    status = main(["promote", *asked, *map(str, more)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


@pytest.mark.long
def test_a_good_version_passes_and_bad_ones_are_put_back(classifiers, exports, tmp_path, capsys):
    held_out = list(exports.runs["one"].test_predictions())
    texts = [row.text for row in held_out]
    table = tmp_path / "outcomes.jsonl"
    # What the good version answers is taken for true.
    table.write_text(
        "".join(json.dumps({"text": row.text, "label": row.predicted}) + "\n" for row in held_out)
    )
    with site(classifiers, tmp_path) as (server, asked, logs), clients(server.grpc, texts) as said:
        answers, errors = said
        live = ["--logs", logs, "--watch", "6", "--least-rows", "100"]

        # The answers of version 4 are not those of its export: the label never moves.
        status, printed = promote(capsys, asked, "--to", "4", "--gate", "golden")
        assert status == 1
        assert "golden: version 4: request 0" in printed
        assert stable(server) == 1

        # Version 2 answers as at export, but one label only.
        status, printed = promote(
            capsys, asked, "--to", "2", "--gate", "golden", "--gate", "drift", *live
        )
        assert status == 1, printed
        assert "golden: version 2 gives all" in printed
        assert "drift: label was" in printed
        assert "label stable is back at version 1" in printed
        assert stable(server) == 1

        outcomes = ["--gate", "outcomes", "--outcomes", table, "--least-accuracy", "0.9"]
        status, printed = promote(capsys, asked, "--to", "2", *outcomes, *live)
        assert status == 1, printed
        assert "answers were right" in printed
        assert stable(server) == 1

        every = ["--gate", "golden", "--gate", "latency", "--most-latency", "20"]
        status, printed = promote(
            capsys, asked, "--to", "3", *every, "--gate", "drift", *outcomes, *live
        )
        assert status == 0, printed
        assert "m: stable 1 -> 3" in printed
        assert stable(server) == 3
    assert errors == []
    assert len(answers) > 50
    history = [json.loads(line) for line in open_lines(tmp_path / "models.config.history.jsonl")]
    moved = [(one["command"], one["from"], one["to"]) for one in history]
    assert moved == [
        ("promote", 1, 2), ("rollback", 2, 1), ("promote", 1, 2), ("rollback", 2, 1),
        ("promote", 1, 3),
    ]  # fmt: skip


def open_lines(path):
    return path.read_text().splitlines()


@pytest.mark.slow
def test_without_requests_nothing_is_promoted(classifiers, tmp_path, capsys):
    with site(classifiers, tmp_path) as (server, asked, logs):
        live = ["--gate", "drift", "--logs", logs, "--watch", "4"]
        for asked_before in (False, True):
            if asked_before:
                with connect(server.grpc) as client:
                    client.predict({"text": ["fine"]}, "m")
            status, printed = promote(capsys, asked, "--to", "3", *live)
            assert status != 0
            assert "in 4 s; expected at least 200" in printed
            assert stable(server) == 1


def save_slow(version, products):
    """Adds one, after so many products of matrices."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(x):
        start = tf.ones((300, 300)) * tf.reduce_sum(x)
        _, wasted = tf.while_loop(
            lambda k, _: k < products, lambda k, m: (k + 1, tf.matmul(m, m) * 1e-9), (0, start)
        )
        return {"y": x + 1 + 0 * tf.reduce_sum(tf.minimum(wasted, 0))}

    tf.saved_model.save(tf.Module(), str(version), signatures={"serving_default": serve})
    asked = {"signature_name": "serving_default", "inputs": {"x": [1.0]}}
    write_golden(version, [{**asked, "outputs": {"y": [2.0]}}])


@pytest.mark.slow
def test_a_slow_version_is_not_promoted(tmp_path, capsys):
    base = tmp_path / "slow"
    for number, products in ((1, 1), (2, 200)):
        save_slow(base / str(number), products)
    with site(base, tmp_path) as (server, asked, _):
        status, printed = promote(
            capsys, asked, "--to", "2", "--gate", "golden", "--gate", "latency"
        )
        assert status == 1
        assert "expected at most 1.5 times as long" in printed
        assert stable(server) == 1
        assert promote(capsys, asked, "--to", "2", "--gate", "golden")[0] == 0
        assert stable(server) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gate", "drift"], "--gate drift: expected --logs"),
        (["--gate", "outcomes", "--logs", "x"], "expected --outcomes and --least-accuracy"),
        (["--gate", "drift", "--logs", "x", "--watch", "0"], "expected numbers above 0"),
        (["--gate", "golden", "--offline"], "expected a running server; got --offline"),
    ],
)
def test_gates_without_what_they_need(tmp_path, capsys, arguments, said):
    config = tmp_path / "models.config"
    config.write_text(CONFIG.format(base=tmp_path))
    before = config.read_bytes()
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"")
    status, printed = promote(capsys, ["--config", str(config), "--model", "m"], *arguments)
    assert status == 2, printed
    assert said in printed
    assert config.read_bytes() == before
