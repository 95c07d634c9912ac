"""What all tests of the server share: test models, one server of them, exports."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest

from tests.made_once import made_once
from tests.serving.servers import flags_for, running


@pytest.fixture
def no_superpowers():
    """What to put before a command so that file permissions apply to it, even for root."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may read everything, and setpriv is not installed")
    without = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={without}", f"--inh-caps={without}")


@pytest.fixture
def figures(request):
    """Records a sentence with a figure; `make robustness` gathers them in a file."""

    def note(sentence):
        if path := os.environ.get("KERAS_GRU_FIGURES"):
            with Path(path).open("a") as file:
                file.write(f"{request.node.name}: {sentence}\n")

    return note


@pytest.fixture(scope="session")
def models():
    """Base paths of the test models; tests leave them as they are."""
    from gru_serving.conformance.models import save_all

    return made_once("models", save_all)


@pytest.fixture(scope="session")
def server(models, tmp_path_factory):
    directory = tmp_path_factory.mktemp("server")
    flags = flags_for(models, directory)
    with running(directory / "log", *flags, "--enable_grpc_healthcheck_service") as server:
        yield server


@pytest.fixture(params=["rest", "grpc"])
def url(request, server):
    """The address of the server over each transport; of a file's own `server`, where it has one."""
    return getattr(server, request.param)


@pytest.fixture(scope="session")
def channel(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


@pytest.fixture(scope="session")
def stub(channel):
    """The prediction service, by tensorflow-serving-api."""
    from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

    return PredictionServiceStub(channel)


@pytest.fixture(scope="session")
def models_stub(channel):
    """The model service, by tensorflow-serving-api."""
    from tensorflow_serving.apis.model_service_pb2_grpc import ModelServiceStub

    return ModelServiceStub(channel)


@pytest.fixture(scope="session")
def exports():
    """Two tiny exported classifiers: `one` reads in one direction and streams, `both` in both.

    `both` has all that `one` lacks: pre-trained vectors, word pieces, ratios and an n-gram model.

    They are made once for all processes of a test run; tests leave them as they are.
    """
    from gru_training.sentiment.run import SentimentRun

    root = made_once("exports", make_exports)
    names = ("one", "both")
    return Exports(root, {name: SentimentRun.open(root / "runs" / name) for name in names})


def make_exports(root):
    from gru_serving.export.run import export_run
    from gru_training.sentiment.config import (
        ClassifierConfig,
        PretrainingConfig,
        SentimentConfig,
        SentimentDataConfig,
        SentimentRunConfig,
        SentimentTrainingConfig,
    )
    from gru_training.sentiment.grammar import generate_reviews
    from gru_training.sentiment.pipeline import train_sentiment

    one = SentimentConfig(
        data=SentimentDataConfig(reviews=600),
        model=ClassifierConfig(8, 8, layers=2, bidirectional=False),
        training=SentimentTrainingConfig(epochs=1),
        run=SentimentRunConfig(runs_dir=root / "runs", name="one"),
    )
    texts = root / "texts.txt"
    texts.write_text("".join(f"{review.text}\n" for review in generate_reviews(300, 9)))
    both = replace(
        one,
        pretraining=PretrainingConfig(texts, vector_size=4, topic_size=3),
        model=ClassifierConfig(8, 8, subwords=True, word_ratios=True, ngrams=True, ngram_order=3),
        run=replace(one.run, name="both"),
    )
    for config in (one, both):
        export_run(train_sentiment(config).path, root / config.run.name)


@dataclass
class Exports:
    root: Path
    runs: dict

    def version(self, name):
        return self.root / name / "1"
