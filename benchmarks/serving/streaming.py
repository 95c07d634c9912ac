"""Time of a streamed step, and drift of a long stream from the sequence.

    python -m benchmarks.serving.streaming models/sentiment --steps 10000 --json streaming.json

Starts the server on the newest version of an exported model that streams (a text classifier
trained with --max-tokens above the steps, as the sequence is cut there; or a forecaster), feeds
it one token or tick after the other over both transports, and compares every answer and hidden
state with those of the signature `gates` on the whole text or series.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.client import Client, connect
from gru_serving.client.streaming import StreamingSession
from gru_serving.engine.golden import difference, read_golden
from gru_serving.errors import ServingError
from gru_serving.storage.publishing import find_version
from tests.ports import free_ports

START_TIMEOUT = 120.0


def main() -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path, help="base path of an exported model")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    version = find_version(arguments.model)
    ports = free_ports(2)
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "gru_serving", "serve"),
            *(f"--port={ports[0]}", f"--rest_api_port={ports[1]}", "--model_name=m"),
            f"--model_base_path={version.resolve().parent}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        rows = []
        for url in (f"grpc://localhost:{ports[0]}", f"http://localhost:{ports[1]}"):
            with connect(url, timeout=600) as client:
                wait(client)
                rows.append(measure(version, client, arguments.steps))
                show(rows[-1])
    finally:
        server.terminate()
        server.wait()
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def measure(version: Path, client: Client, steps: int) -> dict[str, Any]:
    """Stream pieces of the golden requests, again and again, and compare with the whole."""
    golden = [r for r in read_golden(version) if r["signature_name"] == "serving_default"]
    if "text" in golden[0]["inputs"]:
        tokens = some_tokens(golden, client, steps)
        whole = client.predict([" ".join(tokens)], "m", signature="gates")
        read = [token.decode() for token in whole["tokens"][0]]
        if read != tokens:
            raise SystemExit(
                f"expected a model that reads {len(tokens)} tokens of a text, got {len(read)}: "
                "train it with a larger --max-tokens"
            )
        return stream(client, tokens, whole, "scores")
    rows = [row for request in golden for row in np.array(request["inputs"]["history"])]
    ticks = np.nan_to_num(np.concatenate(rows).astype(np.float32))
    ticks = np.resize(ticks, (steps, ticks.shape[1]))
    whole = client.predict({"history": ticks[np.newaxis]}, "m", signature="gates")
    return stream(client, list(ticks), whole, "forecast")


def some_tokens(golden: list[dict[str, Any]], client: Client, count: int) -> list[str]:
    """Tokens of the golden texts, again and again."""
    texts = [text for request in golden for text in request["inputs"]["text"]]
    answer = client.predict([" ".join(texts)], "m", signature="gates", output_filter=["tokens"])
    tokens = [token.decode() for token in answer["tokens"][0]]
    return list(itertools.islice(itertools.cycle(tokens), count))


def stream(
    client: Client, pieces: list[Any], whole: dict[str, np.ndarray], answer: str
) -> dict[str, Any]:
    """Feed the pieces; latencies in milliseconds, largest differences from the sequence.

    Args:
        client: of either transport.
        pieces: tokens or ticks.
        whole: what `gates` answers to all of them.
        answer: the output to compare, of `gates` and of `step`.
    """
    session = StreamingSession(client, "m")
    seconds, answers, states = [], [], []
    hidden = whole["state"][0].reshape(len(pieces), -1)
    for piece in pieces:
        started = time.perf_counter()
        fed = session.feed(piece)
        seconds.append(time.perf_counter() - started)
        answers.append(fed.outputs[answer][0].ravel())
        states.append(session.saved.state[: hidden.shape[1]])
    apart = difference(whole[answer][0].reshape(len(pieces), -1), np.array(answers))
    hidden_apart = difference(hidden, np.array(states, np.float32))
    milliseconds = 1000 * np.array(seconds)
    return {
        "transport": client.url.partition(":")[0],
        "steps": len(pieces),
        "p50": float(np.percentile(milliseconds, 50)),
        "p95": float(np.percentile(milliseconds, 95)),
        "p99": float(np.percentile(milliseconds, 99)),
        "max": float(milliseconds.max()),
        "steps_per_second": len(pieces) / float(np.sum(seconds)),
        "largest_answer_difference": float(apart.max()),
        "largest_state_difference": float(hidden_apart.max()),
        "steps_equal_bit_for_bit": int((np.maximum(apart.max(1), hidden_apart.max(1)) == 0).sum()),
    }


def show(row: dict[str, Any]) -> None:
    """Print one transport's figures."""
    print(
        f"{row['transport']}: {row['steps']:,} steps, {row['steps_per_second']:.0f}/s; ms p50 "
        f"{row['p50']:.2f}, p95 {row['p95']:.2f}, p99 {row['p99']:.2f}, max {row['max']:.1f}\n"
        f"  from the sequence: answers {row['largest_answer_difference']:.1e}, states "
        f"{row['largest_state_difference']:.1e} at most; "
        f"{row['steps_equal_bit_for_bit']:,} steps equal bit for bit",
        flush=True,
    )


def wait(client: Client) -> None:
    """Wait until the server serves."""
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            client.status("m", timeout=1)
            return
        except ServingError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
