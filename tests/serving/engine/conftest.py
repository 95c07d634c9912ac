"""What a predictor is asked to run."""

import pytest

from gru_serving.engine.predictor import Predictor


@pytest.fixture
def calls(monkeypatch):
    """What is run: names of signatures, or of the tensors that several of them fetch."""
    seen = []
    real, together = Predictor.prepare, Predictor.prepare_graph

    def counted(self, inputs, signature_name="", *rest, **more):
        seen.append(signature_name)
        return real(self, inputs, signature_name, *rest, **more)

    def counted_run(self, feeds, fetches, *rest):
        seen.append(tuple(fetches))
        return together(self, feeds, fetches, *rest)

    monkeypatch.setattr(Predictor, "prepare", counted)
    monkeypatch.setattr(Predictor, "prepare_graph", counted_run)
    return seen
