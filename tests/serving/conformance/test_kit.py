"""This project's server answers all cases of the kit, and the cases are what their README says."""

import re
import shutil
import tomllib
from contextlib import contextmanager

import pytest

from gru_serving.conformance import kit
from gru_serving.conformance.case import CASES, read_cases
from gru_serving.conformance.models import FLAGS, make_models
from gru_serving.conformance.server import Server
from tests.made_once import made_once
from tests.serving.conformance.onnx_graphs import add_graphs
from tests.serving.servers import RUNTIME, running

ALL = {case.name: case for case in kit.all_cases()}
ALWAYS, ON_ONNX = tomllib.loads(kit.DEVIATIONS.read_text("utf-8")).values()
TOPICS = ("values", "predict", "http", "batching")
GRAPHS = [name for name, case in ALL.items() if case.topic in TOPICS]


@contextmanager
def asked_at(models, log):
    """A server of the kit's models, with the flags of the kit's own command line."""
    flags = (f"--model_config_file={models}/models.config", *(f"--{flag}" for flag in FLAGS))
    with (
        running(log, *flags) as process,
        Server(process.grpc, process.rest, str(models), timeout=30) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    models = made_once("conformance", make_models)
    with asked_at(models, tmp_path_factory.mktemp("kit") / "log") as server:
        yield server


def check(server, name, documented):
    """A documented deviation that is none any more is to be taken off the list."""
    (outcome,) = kit.ask(server, [ALL[name]], documented)
    if name in documented:
        assert outcome.verdict == kit.DOCUMENTED
    else:
        assert (outcome.verdict, outcome.reason) == (kit.SAME, "")


@pytest.mark.parametrize("name", ALL)
def test_case(asked, name):
    check(asked, name, ALWAYS)


@pytest.fixture(scope="module")
def asked_on_onnx(tmp_path_factory):
    """The same models with graphs that ONNX Runtime runs."""
    if RUNTIME != "auto":
        pytest.skip("the server chooses runtimes itself here")
    models = tmp_path_factory.mktemp("onnx") / "models"
    shutil.copytree(made_once("conformance", make_models), models)
    (models / "models.config").write_text(kit.CONFIG.read_text().replace("$models", str(models)))
    add_graphs(models)
    log = models.parent / "log"
    with asked_at(models, log) as server:
        assert log.read_text().count("run by onnx") == 6
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_case_on_onnx_runtime(asked_on_onnx, name):
    check(asked_on_onnx, name, {**ALWAYS, **ON_ONNX})


def test_documented_deviations_are_of_cases():
    assert {*ALWAYS, *ON_ONNX} <= set(ALL)
    assert kit.read_deviations(kit.DEVIATIONS) == {**ALWAYS, **ON_ONNX}


def test_every_case_says_where_its_rule_stands():
    for case in ALL.values():
        assert re.fullmatch(r"[a-z_/.0-9]+\.(cc|h|py|proto)(: .+)?", case.source), case.name
        assert case.rule.endswith("."), case.name


def test_keys_are_those_of_the_readme():
    said = re.findall(r"`(\w+)`", (CASES / "README.md").read_text("utf-8"))
    assert {key for case in read_cases() for key in case.wants} <= set(said)


BEGUN = 'name = "a"\nrule = "b."\nsource = "c.cc"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{BEGUN}\nrest = "GET /"\nstatuss = 3', "statuss"),
        ('name = "a"\nrest = "GET /"', r"'rule', 'source'\], which are missing"),
        (BEGUN, "expected a request"),
        (f'{BEGUN}\nrest = "GET /"\nrows = [[1], [1]]\ncolumns = ["x"]', r"'a: 1 \(rest\)'"),
    ],
)
def test_a_case_that_is_wrong_is_named(tmp_path, text, said):
    (tmp_path / "mine.toml").write_text(f"[[case]]\n{text}\n")
    with pytest.raises(ValueError, match=said):
        read_cases(tmp_path)


def test_a_transport_that_is_not_asked_is_not_offered():
    with Server(None, "http://localhost:1") as server:
        (outcome,) = kit.ask(server, [ALL["unknown model (grpc)"]], {})
    assert (outcome.verdict, outcome.reason) == (kit.NOT_OFFERED, "--grpc was not given")
