"""Accuracy of a served classifier, compared with the trained one: all test rows, over the network.

    gru-serve export runs/RUN --to models/sentiment
    gru-serve serve --port=8500 --model_name=sentiment --model_base_path=$PWD/models/sentiment
    python -m benchmarks.sentiment.served runs/RUN --url grpc://localhost:8500 --model sentiment

Exit status 1: the served model is less accurate than the run says.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.client import connect
from gru_serving.errors import ServingError
from gru_training.errors import TrainingError
from gru_training.sentiment.run import SentimentRun

_TEXTS_PER_REQUEST = 64


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, compare, and print a line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sentiment.served",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="run directory of the served model")
    parser.add_argument("--url", required=True, help="of the server, http:// or grpc://")
    parser.add_argument("--model", required=True, help="name of the served model")
    arguments = parser.parse_args(argv)
    try:
        figures = compare(SentimentRun.open(arguments.run), arguments.url, arguments.model)
    except (TrainingError, ServingError) as error:
        parser.error(str(error))
    print(
        f"{figures['rows']:,} test rows: accuracy {figures['served']:.2%} served, "
        f"{figures['trained']:.2%} in the run; largest difference of a score "
        f"{figures['largest_difference']:.1e}"
    )
    return int(figures["served"] < figures["trained"])


def compare(run: SentimentRun, url: str, model: str) -> dict[str, Any]:
    """Accuracies over all test rows, and how far the scores differ."""
    rows = list(run.test_predictions())
    labels: list[str] = []
    scores: list[np.ndarray] = []
    with connect(url, timeout=60) as client:
        for start in range(0, len(rows), _TEXTS_PER_REQUEST):
            texts = [row.text for row in rows[start : start + _TEXTS_PER_REQUEST]]
            answers = client.predict({"text": texts}, model=model)
            labels += [_text(label) for label in np.ravel(answers["label"])]
            scores.append(np.asarray(answers["scores"]))
    expected = np.array([row.scores for row in rows])
    return {
        "rows": len(rows),
        "served": float(np.mean([row.label == got for row, got in zip(rows, labels, strict=True)])),
        "trained": run.metrics["model"]["test"]["accuracy"],
        "largest_difference": float(np.abs(np.concatenate(scores) - expected).max()),
    }


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
