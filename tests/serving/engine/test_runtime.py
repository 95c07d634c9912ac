"""Which runtime runs a version, and what a run in ONNX Runtime keeps of a session's promises."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from gru_serving.engine.golden import GOLDEN
from gru_serving.engine.load_options import LoadOptions, SessionOptions
from gru_serving.engine.onnx import graph
from gru_serving.engine.onnx import session as onnx_session
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.errors import Code, DeadlineExceeded, FailedPrecondition, NotFound, ServingError
from gru_serving.preprocessing.description import FOLDER, Description
from tests.serving.scrape import rendered
from tests.serving.servers import wait_until

SCRIPT = """
import sys
from pathlib import Path

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tensorflow":
            raise ModuleNotFoundError(name, name=name)

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "tensorflow" else found(name, *rest)
sys.meta_path.insert(0, Absent())
from gru_serving.engine.version_loader import VersionLoader
from gru_serving.errors import ServingError
try:
    print(VersionLoader()(Path(sys.argv[1])).runtime)
except ServingError as error:
    print(error.status)
"""


def opened(version, runtime="auto", **options):
    found = open_version(version, LoadOptions(session=SessionOptions(**options), runtime=runtime))
    return Predictor(found.session, runtime=found.runtime)


@pytest.fixture
def copy(exports, tmp_path):
    """A copy of a version that may be altered: without digests."""
    copied = shutil.copytree(exports.version("one"), tmp_path / "1")
    (copied / "assets.extra" / "digests.json").unlink()
    return copied


@pytest.fixture(scope="module")
def in_onnx(exports):
    predictor = opened(exports.version("one"), "onnx")
    yield predictor
    predictor.close()


def texts(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return {"text": array}


@pytest.mark.slow
def test_an_export_runs_in_onnx_runtime(exports, caplog):
    caplog.set_level(logging.INFO)
    loader = VersionLoader()
    predictor = loader(exports.version("one"))
    assert predictor.runtime == "onnx"
    assert "ONNX Runtime answers" in caplog.text
    loader.note_metadata("m", 1, exports.version("one"))
    assert "Model m, version 1: run by onnx" in caplog.text
    page = rendered(loader._metrics).decode()
    assert 'gru_serve:model_runtime{model_name="m",version="1",runtime="onnx"} 1' in page
    predictor.close()
    asked = VersionLoader(LoadOptions(runtime="tensorflow"))(exports.version("one"))
    assert asked.runtime == "tensorflow"
    asked.close()


@pytest.mark.slow
def test_a_graph_that_answers_otherwise_is_not_served(copy, caplog):
    golden = json.loads((copy / GOLDEN).read_text())
    golden[0]["outputs"]["scores"][0][0] += 1e-3
    (copy / GOLDEN).write_text(json.dumps(golden))
    predictor = opened(copy)
    assert predictor.runtime == "tensorflow"
    assert "served by TensorFlow, not by ONNX Runtime: request 0" in caplog.text
    predictor.close()
    with pytest.raises(ServingError, match="output 'scores', row 0: expected"):
        opened(copy, "onnx")


def test_without_golden_requests_nothing_vouches_for_a_graph(copy):
    (copy / GOLDEN).unlink()
    predictor = opened(copy)
    assert predictor.runtime == "tensorflow"
    predictor.close()
    predictor = opened(copy, "onnx")  # asked for by name
    assert predictor.runtime == "onnx"
    predictor.close()


def test_onnx_alone_refuses_what_has_no_graph(models):
    with pytest.raises(FailedPrecondition, match=r"--runtime=onnx needs assets\.extra/onnx"):
        opened(models / "affine" / "1", "onnx")
    predictor = opened(models / "affine" / "1")
    assert predictor.runtime == "tensorflow"
    predictor.close()


def test_without_tensorflow(exports, models):
    said = {}
    for name, version in (("ours", exports.version("one")), ("theirs", models / "affine" / "1")):
        command = [sys.executable, "-c", SCRIPT, str(version)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        said[name] = done.stdout.strip()
    assert said["ours"] == "onnx"
    assert said["theirs"] == (
        f"FAILED_PRECONDITION: {models / 'affine' / '1'}: needs TensorFlow, which is not installed "
        "here: use the image `engine` in place of `engine-light`, or pip install "
        "'keras-gru[serve]'"
    )


@pytest.mark.slow
def test_signatures_that_are_left_to_tensorflow(copy):
    Description.read(copy).without({"gates": "it has no graph"}).write(copy / FOLDER)
    both, alone = opened(copy), opened(copy, "onnx")
    assert both.runtime == alone.runtime == "onnx"
    asked = texts(b"not bad")
    assert both.predict(asked, "gates")["tokens"].tolist() == [[b"not", b"bad"]]
    with pytest.raises(FailedPrecondition, match=r"'gates' needs TensorFlow.*it has no graph"):
        alone.predict(asked, "gates")
    np.testing.assert_array_equal(both.predict(asked)["scores"], alone.predict(asked)["scores"])
    both.close()
    alone.close()


def test_rows_do_not_depend_on_how_a_run_is_divided(in_onnx):
    rng = np.random.default_rng(4)
    words = [b"good", b"bad", b"not", b"film", b"the"]
    several = [b" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(67)]
    time.sleep(onnx_session.CALM_SECONDS)
    together = in_onnx.predict(texts(*several))["scores"]
    with onnx_session.Running():  # beside another run it is not divided
        whole = in_onnx.predict(texts(*several))["scores"]
    alone = np.concatenate([in_onnx.predict(texts(one))["scores"] for one in several])
    np.testing.assert_allclose(together, whole, atol=1e-6)
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "most", "parts"), [(0, 2, 1), (1, 2, 1), (15, 2, 1), (16, 2, 2), (64, 4, 4)]
)
def test_parts(rows, most, parts):
    divided = onnx_session.parts_of(rows, most)
    assert len(divided) == parts
    assert [row for part in divided for row in range(rows)[part]] == list(range(rows))


@pytest.mark.parametrize(("frugal", "parts"), [(False, [4]), (True, [])])
def test_batches_leave_the_other_cores_alone(exports, monkeypatch, frugal, parts):
    """Those of a server that merges runs; and a single row never wakes another thread."""
    divided = []

    def in_parts(call, parts):
        divided.append(len(parts))
        return list(map(call, parts))

    monkeypatch.setattr(onnx_session, "in_parts", in_parts)
    monkeypatch.setattr(onnx_session, "schedulable_cpus", lambda: 4)
    predictor = opened(exports.version("one"), "onnx", frugal=frugal)
    time.sleep(onnx_session.CALM_SECONDS)
    divided.clear()  # golden requests
    for rows in (1, 64):
        predictor.predict(texts(*[b"good"] * rows))
    predictor.close()
    assert divided == parts


def test_runs_that_met_lately_are_not_divided(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(onnx_session.time, "monotonic", lambda: now)
    monkeypatch.setattr(onnx_session, "_met", 0.0)
    with onnx_session.Running() as alone:
        assert alone
        with onnx_session.Running() as second:
            assert not second
    with onnx_session.Running() as soon_after:
        assert not soon_after  # the other client will be back before this one ends
    now += 2 * onnx_session.CALM_SECONDS
    with onnx_session.Running() as alone:
        assert alone


def test_a_part_that_fails(in_onnx):
    """No part outlives the call, and the error is that of the part."""
    ended = []

    def call(part):
        if part.start:
            raise ValueError(part)
        time.sleep(0.05)
        ended.append(part)

    with pytest.raises(ValueError, match="slice"):
        onnx_session.in_parts(call, [slice(0, 1), slice(1, 2)])
    assert ended == [slice(0, 1)]


def test_deadline(in_onnx):
    long = texts(*[b"good " * 400] * 2000)
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="Timed out waiting for notification"):
        in_onnx.predict(long, timeout_ms=1)
    assert time.monotonic() - started < 30
    assert len(in_onnx.predict(texts(b"good"), timeout_ms=10_000)["label"]) == 1


def test_one_thread_watches_all_deadlines():
    def watchers():
        return {one for one in threading.enumerate() if one.name == "deadlines"}

    before = watchers()
    deadlines = graph._Deadlines()
    later = [ort.RunOptions() for _ in range(20)]
    end = time.monotonic() + 60
    with ThreadPoolExecutor(len(later)) as threads:
        list(threads.map(lambda flags: deadlines.add(flags, end), later))
    assert len(watchers() - before) == 1
    sooner, ended = ort.RunOptions(), ort.RunOptions()
    deadlines.add(sooner, time.monotonic() + 0.2)  # the thread sleeps until the others' end
    deadlines.add(ended, time.monotonic() + 0.2)
    deadlines.discard(ended)
    wait_until(lambda: sooner.terminate)
    assert not any(flags.terminate for flags in (ended, *later))
    deadlines.add(ended, time.monotonic() + 0.1)  # and again, after it has slept
    wait_until(lambda: ended.terminate)


def test_brief_runs_are_those_of_little_processor_time():
    brevity = onnx_session.Brevity()
    brief, long = onnx_session.SECONDS / 2, onnx_session.SECONDS * 2
    assert not brevity.expects(10)  # nothing is known
    brevity.note(10, brief)
    assert brevity.expects(10)
    assert not brevity.expects(11)
    brevity.note(8, long)
    brevity.note(2, brief)
    assert brevity.expects(10)  # one long run is an accident
    brevity.note(10, long)
    assert not brevity.expects(8)
    assert brevity.expects(4)
    brevity.note(10, brief)
    for _ in range(2):
        brevity.note(10, long)
        brevity.note(10, brief)
    assert brevity.expects(10)


def test_interrupted(exports):
    predictor = opened(exports.version("one"), "onnx")
    errors = []

    def ask():
        try:
            while True:
                predictor.predict(texts(*[b"good " * 50] * 64))
        except ServingError as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.2)
    predictor.interrupt()
    asking.join(20)
    assert not asking.is_alive()
    assert [error.code for error in errors] == [Code.CANCELLED]
    predictor.close()
    with pytest.raises(ServingError, match="closed"):
        predictor.predict(texts(b"good"))


def test_tensors_by_name(in_onnx):
    session = in_onnx._session
    signature = in_onnx.signatures["serving_default"]
    feed = session.tensor(signature.inputs["text"].name)
    fetch = session.tensor(signature.outputs["label"].name)
    (labels,) = session.run({feed: texts(b"good")["text"]}, [fetch])
    assert labels.shape == (1,)
    with pytest.raises(NotFound, match="nothing:0, specified in either feed_devices"):
        session.tensor("nothing")


def test_model_onnx_of_others(tmp_path):
    """A folder with nothing but `model.onnx`; strings go in and out as bytes."""
    from keras_gru.convert.onnx_graph import OnnxGraph

    graph = OnnxGraph()
    x = graph.input("x", "float32", (None, 2))
    name = graph.input("name", "object", (None,))
    graph.output("twice", graph.add("Add", x, x), "float32", (None, 2))
    graph.output("same", graph.add("Identity", name), "object", (None,))
    (tmp_path / "1").mkdir()
    graph.write(tmp_path / "1" / "model.onnx", "others")
    predictor = VersionLoader()(tmp_path / "1")
    assert predictor.runtime == "onnx"
    signature = predictor.signatures["serving_default"]
    assert signature.inputs["x"].shape == (-1, 2)
    inputs = {"x": np.float32([[1, 2]]), "name": np.array([b"a\xff"], object)}
    answer = predictor.predict(inputs)
    assert answer["twice"].tolist() == [[2, 4]]
    assert answer["same"].tolist() == ["a\ufffd".encode()]
    with pytest.raises(ServingError, match=r"Expects arg\[1\] to be float but double is provided"):
        predictor.predict({**inputs, "x": np.float64([[1, 2]])})
    with pytest.raises(ServingError, match="ONNX Runtime: "):
        predictor.predict({**inputs, "x": np.float32([[1, 2, 3]])})
    predictor.close()


def test_a_model_onnx_that_cannot_load_is_an_error_of_onnx_runtime(tmp_path):
    """TensorFlow, which cannot run it either, is not imported for it."""
    import onnx
    from onnx import TensorProto, helper

    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])  # noqa: E731
    node = helper.make_node("NoSuchOperation", ["x"], ["y"], domain="elsewhere")
    graph = helper.make_graph([node], "others", [tensor("x")], [tensor("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("elsewhere", 1)]
    (tmp_path / "1").mkdir()
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, tmp_path / "1" / "model.onnx")
    code = (
        "import sys; from pathlib import Path\n"
        "from gru_serving.engine.version_loader import VersionLoader\n"
        f"try: VersionLoader()(Path({str(tmp_path / '1')!r}))\n"
        "except Exception as error: print(error)\n"
        "print('tensorflow' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(r"cannot load the ONNX graph .*/1/model.onnx: .*NoSuchOperation", said.stdout)
    assert said.stdout.endswith("False\n")


def test_an_endless_loop_in_a_model_onnx_ends_at_its_deadline(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go_on"], ["still"]),
            helper.make_node("Sin", ["before"], ["after"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)],
        "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [helper.make_tensor("yes", TensorProto.BOOL, [], [True])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "1").mkdir()
    onnx.save(model, tmp_path / "1" / "model.onnx")
    predictor = VersionLoader()(tmp_path / "1")
    before = time.process_time()
    with pytest.raises(DeadlineExceeded):
        predictor.predict({"x": np.ones(1, "f4")}, timeout_ms=200)
    spent = time.process_time() - before
    time.sleep(0.3)
    assert time.process_time() - before < spent + 0.1  # nothing runs on
    predictor.close()


@pytest.mark.slow
def test_reloads_leave_nothing_behind(exports, figures):
    """Fifty loads and unloads of one version."""

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

    def reload():
        predictor = opened(exports.version("one"), "onnx")
        predictor.predict(texts(*[b"good"] * 32))
        predictor.close()

    for _ in range(10):
        reload()
    before = resident()
    for _ in range(50):
        reload()
    grown = resident() - before
    figures(f"50 reloads in ONNX Runtime: {grown:.1f} MB more")
    assert grown < 10


@pytest.mark.parametrize(
    "use",
    [
        "import gru_serving.engine.onnx.graph",
        "from contextlib import suppress; from pathlib import Path\n"
        "from types import SimpleNamespace as Run\n"
        "from gru_training.errors import RunDirectoryError\n"
        "from gru_training.runs.stored_graph import StoredGraph\n"
        "file = Path(__file__)\n"
        "with suppress(RunDirectoryError): StoredGraph(file.name, ()).load(Run(path=file.parent))",
    ],
    ids=["server", "run"],
)
def test_onnx_runtime_reports_nothing_to_its_makers(tmp_path, use):
    """It would keep what it reports, and the number of the machine, in a file until it is sent."""
    program = tmp_path / "program.py"
    program.write_text(use)
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, str(program)], env=environment, check=True)
    assert not [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name]
