"""Steps carry the state as one unbroken text would, and move every weight."""

import numpy as np
import pytest

from gru_training.language.batches import Chunk, DocumentChunks
from gru_training.language.config import LanguageModelConfig
from gru_training.language.model import build_language_model
from gru_training.language.reading import END_ID
from gru_training.language.training import (
    carried_states,
    make_eval_step,
    make_train_step,
)
from gru_training.loop.optimizers import SparseAdam
from tests import oracle

V = 12
RNG = np.random.default_rng(7)
ROWS = [RNG.integers(3, V, length).astype(np.int32) for length in (9, 4, 6, 1)]


def language_model(**settings):
    model = build_language_model(LanguageModelConfig(3, 4, 2, **settings), V)
    for weight in model.trainable_variables:
        weight.assign(np.random.default_rng(weight.shape[0]).normal(0, 0.6, weight.shape))
    return model


def nats_by_hand(model, row):
    """Of each token of a document and of its end, in NumPy with float64."""
    ids = [END_ID, *row]
    table = model.embedding.embeddings.numpy().astype(np.float64)
    x = table[ids]
    for gru in model.grus:
        weights = [weight.numpy().astype(np.float64) for weight in gru.trainable_variables]
        x, _ = oracle.forward(x, np.zeros(4), *weights, reset_after=True)
    kernel, bias = (weight.numpy() for weight in model.projection.trainable_variables)
    logits = (x @ kernel + bias) @ table.T + model.output_bias.numpy()
    logits = logits[:, 1:]
    targets = np.array([*row, END_ID]) - 1
    return np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(targets)), targets]


@pytest.mark.parametrize(("batch_size", "steps"), [(1, 4), (2, 3), (4, 32)])
def test_documents_cost_the_same_however_they_are_cut(batch_size, steps):
    model = language_model()
    step = make_eval_step(model, carried_states(model, batch_size))
    chunks = list(DocumentChunks(ROWS, batch_size, steps))
    total = sum(float(step(*chunk)["loss"]) for chunk in chunks)
    expected = sum(nats_by_hand(model, row).sum() for row in ROWS)
    assert total == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [0, 5])
def test_a_step_moves_every_weight_and_carries_the_state(samples):
    model = language_model(dropout=0.2, recurrent_dropout=0.2)
    carried = carried_states(model, 2)
    step = make_train_step(model, SparseAdam(1e-3), carried, clip_norm=1.0,
                           samples=samples, seed=3)  # fmt: skip
    before = model.get_weights()
    (ids, goes_on), targets = next(iter(DocumentChunks(ROWS, 2, 4)))
    found = step(Chunk(ids, goes_on), targets)
    assert float(found["bits"]) == pytest.approx(float(found["loss"]) / np.log(2))
    moved = [
        np.any(old != new)
        for old, new, weight in zip(before, model.get_weights(), model.weights, strict=True)
        if weight.trainable
    ]
    assert all(moved)
    assert all(np.any(state.numpy()) for state in carried)
