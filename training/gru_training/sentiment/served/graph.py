"""The graph of ONNX of a run, from which `gru-train predict` answers without TensorFlow."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa

from gru_training.runs.directory import RunWriter
from gru_training.scoring.class_columns import BOUNDS, class_columns
from gru_training.scoring.engine import score_table
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.native import GraphWriter
from gru_training.sentiment.served.scorer import DIGEST, GRAPH, TOKENS, graph_scorer, model_digest
from gru_training.words.native_tokens import TOKENS_FILE, token_files
from gru_training.words.vocabulary import PADDING, token_ids

_CHECKED_TEXTS = 256
_TOLERANCE = 1e-4


def write_graph(writer: RunWriter, model: Any) -> None:
    """Write the graph of a classifier into its run, and compare its answers with the model's.

    Nothing is written where ONNX cannot express the model, or where the answers differ.

    Args:
        writer: The run, with all its other files in place.
        model: Its model, from word ids (B, T) to logits (B, C).
    """
    run = SentimentRun(writer.path)
    texts = token_files(run.vocabulary, run.cleaned, run.reading)
    try:
        graph = GraphWriter(model, run.config.data.max_tokens, run.head()).answer()
    except ValueError:
        return
    graph.metadata_props.add(key=DIGEST, value=model_digest(run))
    (writer.path / GRAPH).write_bytes(graph.SerializeToString())
    writer.write_text(TOKENS, texts[TOKENS_FILE])
    if not _answers_alike(run):
        for name in (GRAPH, TOKENS):
            (writer.path / name).unlink()


def _answers_alike(run: SentimentRun) -> bool:
    """Whether texts are read as by TensorFlow and answered as the run's report has it."""
    rows = list(itertools.islice(run.test_predictions(), _CHECKED_TEXTS))
    texts = [row.text for row in rows]
    scorer = graph_scorer(run)
    assert scorer is not None
    read, _ = zip(*scorer.word_ids([text.encode() for text in texts]), strict=True)
    wanted = np.concatenate(token_ids(run.preprocessor(), texts))
    if not np.array_equal(np.concatenate(read), wanted[wanted != PADDING]):
        return False
    answers = score_table(scorer, pa.table({"text": texts}))
    names = BOUNDS if run.kind == "number" else class_columns(run.classes)
    scores = np.column_stack([answers[name].to_numpy() for name in names])
    return np.allclose(scores, [row.scores for row in rows], _TOLERANCE, _TOLERANCE)
