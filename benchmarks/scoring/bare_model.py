"""The exported model alone: sorted texts in, as fast as it can take them.

    python -m benchmarks.scoring.bare_model VERSION FILE COLUMN ROWS

prints the best rows per second over sizes of batches and numbers of threads, as JSON.
"""

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from gru_serving.engine.predictor import Predictor
from gru_training.tables.table_file import open_table

SIZES = (64, 128, 256, 512, 1024)
THREADS = (1, 2)


def best(version: Path, texts: Sequence[str]) -> dict[str, float]:
    """Rows per second, with the fastest batch size and number of threads."""
    predictor = Predictor(version)
    ordered = np.empty(len(texts), object)
    ordered[:] = [text.encode() for text in sorted(texts, key=len)]
    found = {"rate": 0.0, "rows": 0, "threads": 0}
    for rows in SIZES:
        batches = [ordered[start : start + rows] for start in range(0, len(ordered), rows)]
        for batch in batches[:: max(1, len(batches) // 4)]:
            predictor.predict({"text": batch})
        for threads in THREADS:
            with ThreadPoolExecutor(threads) as pool:
                started = time.perf_counter()
                for _ in pool.map(lambda batch: predictor.predict({"text": batch}), batches):
                    pass
                rate = len(texts) / (time.perf_counter() - started)
            if rate > found["rate"]:
                found = {"rate": rate, "rows": rows, "threads": threads}
    return found


def main() -> None:
    """Measure."""
    version, data, column, rows = sys.argv[1:]
    texts: list[str] = []
    for piece in open_table(Path(data)).pieces([column]):
        texts += piece.column(column).to_pylist()
    step = max(1, len(texts) // int(rows))
    print(json.dumps(best(Path(version), texts[::step])))


if __name__ == "__main__":
    main()
