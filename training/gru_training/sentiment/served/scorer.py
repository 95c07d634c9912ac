"""The scoring of a table's texts by a trained text classifier, without TensorFlow."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from gru_serving.preprocessing.texts import Tokenizer, Words
from gru_training.runs.stored_graph import StoredGraph
from gru_training.scoring.class_columns import TokenizedTexts, answer_columns, text_column
from gru_training.scoring.scorer import BatchLimits
from gru_training.sentiment.run import SentimentRun
from gru_training.sentiment.served.head import RAW_SCORES

GRAPH, TOKENS = "model.onnx", Tokenizer.file
"""Files of a run for ONNX Runtime, written by `gru_training.sentiment.served.onnx`: word ids to
logits, and texts to tokens.
"""
SLICE = 512
"""Number of texts that are tokenized at once."""
STORED = StoredGraph(
    GRAPH,
    (
        "config.json",
        "model.keras",
        "classes.json",
        "vocabulary.txt",
        "temperature.json",
        "text_rules.json",
        "decision.json",
        "scale.json",
    ),
)


def graph_scorer(run: SentimentRun) -> "GraphScorer | None":
    """Load the scorer of a run whose ONNX graph was made from its present files; otherwise None.

    Raises:
        RunDirectoryError: The graph cannot be loaded.
    """
    # Batches are answered in parallel, each by one thread: see `BatchLimits.in_flight`.
    stored = STORED.load(run, threads=1)
    return None if stored is None else GraphScorer(run, *stored)


class GraphScorer:
    """The model of a sentiment run in ONNX Runtime, with the answers of the Keras model.

    A missing text counts as empty; its answer is about the shares of the classes.

    Args:
        run: A complete run.
        graph: The session of its graph.
        digest: The digest of the files that the graph was made from.
    """

    inputs = ("text",)
    limits = BatchLimits(steps=1 << 14, rows=512, in_flight=2)

    def __init__(self, run: SentimentRun, graph: Any, digest: str) -> None:
        self.identity = {"run": digest, "runtime": "ONNX Runtime"}
        self._columns = answer_columns(run.kind, run.classes)
        self.answers = self._columns.schema
        self._graph = graph
        self._head = run.head()
        self._tokens = Tokenizer.parse((run.path / TOKENS).read_text("utf-8"))
        self._words = Words.parse((run.path / "vocabulary.txt").read_text("utf-8"))
        self._max_tokens, self._backoff = run.config.data.max_tokens, run.backoff
        self._background = ThreadPoolExecutor(1)

    def read(self, rows: pa.RecordBatch) -> TokenizedTexts:
        """Tokenize texts in the background, while the runtime answers.

        Raises:
            RowError: The column holds no texts.
        """
        texts = strings(rows.column("text"))
        found = self._background.submit(lambda: list(self.word_ids(texts)))
        return TokenizedTexts(self.answer, found.result)

    def answer(self, ids: np.ndarray) -> pa.RecordBatch:
        """Label texts of word ids, (B, T) int32, padded with 0."""
        (logits,) = self._graph.run([RAW_SCORES], {"token_ids": ids})
        return self._columns.batch(self._head.answers_of(logits))

    def word_ids(self, texts: Sequence[bytes]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield word ids and their counts, slice by slice, of N texts."""
        for start in range(0, len(texts), SLICE):
            rows = [
                self._tokens(text)[-self._max_tokens :] for text in texts[start : start + SLICE]
            ]
            ids, lengths = (
                self._words.look_up(rows, self._backoff),
                np.array(list(map(len, rows)), np.int64),
            )
            yield ids[np.arange(ids.shape[1]) < lengths[:, np.newaxis]], lengths


def strings(texts: pa.Array) -> list[bytes]:
    """Return N texts, with missing ones as empty."""
    # to_numpy is not used because it loads pandas.
    packed: list[bytes] = text_column(texts).cast(pa.large_binary()).to_pylist()
    return packed
