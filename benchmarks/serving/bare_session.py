"""The model without any server around it, as fast as threads can call it.

    python bare_session.py SAVED_MODEL [RUNTIME]

reads lines `THREADS ROWS SECONDS` and writes a line of JSON for each.
"""

import json
import statistics
import sys
import threading
import time
from pathlib import Path

from benchmarks.serving.model import tokens
from gru_serving.engine.load_options import LoadOptions
from gru_serving.engine.predictor import Predictor
from gru_serving.engine.runtime import open_version


def measure(predictor: Predictor, threads: int, rows: int, seconds: float) -> dict[str, float]:
    """Call it from this many threads for this many seconds."""
    inputs = {"tokens": tokens(rows)}
    times: list[float] = []
    end = time.perf_counter() + seconds

    def call() -> None:
        while (started := time.perf_counter()) < end:
            predictor.predict(inputs)
            times.append(time.perf_counter() - started)

    calling = [threading.Thread(target=call) for _ in range(threads)]
    for one in calling:
        one.start()
    for one in calling:
        one.join()
    ordered = sorted(times)
    return {
        "rate": len(times) / seconds,
        "p50": statistics.median(ordered) * 1e6,
        "p99": ordered[int(len(ordered) * 0.99)] * 1e6,
    }


def main() -> None:
    """Answer the lines of standard input."""
    runtime = sys.argv[2] if len(sys.argv) > 2 else "tensorflow"
    opened = open_version(Path(sys.argv[1]), LoadOptions(runtime=runtime))
    predictor = Predictor(opened.session)
    for line in sys.stdin:
        threads, rows, seconds = line.split()
        print(json.dumps(measure(predictor, int(threads), int(rows), float(seconds))), flush=True)


if __name__ == "__main__":
    main()
