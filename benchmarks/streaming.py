"""How long does a streamed step take, and how far does a long stream drift from the sequence?

    python benchmarks/streaming.py models/sentiment --steps 10000 --json streaming.json

Starts the server on the newest version of an exported one-directional model (trained with
--max-tokens above the steps, as the sequence is cut there), feeds it one token after the other
over both transports, and compares every score and hidden state with those of the signature
`gates` on the whole text.
"""

from __future__ import annotations

import argparse
import itertools
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from serving.client import Client, connect
from serving.errors import ServingError
from serving.golden import read_golden
from serving.publishing import find_version
from serving.streaming import StreamingSession

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
            *(sys.executable, "-m", "serving", "serve"),
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
                tokens = some_tokens(version, client, arguments.steps)
                rows.append(stream(client, tokens))
                show(rows[-1])
    finally:
        server.terminate()
        server.wait()
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def some_tokens(version: Path, client: Client, count: int) -> list[str]:
    """Tokens of the golden texts, again and again."""
    texts = [
        text
        for request in read_golden(version)
        if request["signature_name"] == "serving_default"
        for text in request["inputs"]["text"]
    ]
    answer = client.predict([" ".join(texts)], "m", signature="gates", output_filter=["tokens"])
    tokens = [token.decode() for token in answer["tokens"][0]]
    return list(itertools.islice(itertools.cycle(tokens), count))


def stream(client: Client, tokens: list[str]) -> dict[str, Any]:
    """Feed the tokens; latencies in milliseconds, largest differences from the sequence."""
    whole = client.predict(
        [" ".join(tokens)], "m", signature="gates", output_filter=["scores", "state", "tokens"]
    )
    read = [token.decode() for token in whole["tokens"][0]]
    if read != tokens:
        raise SystemExit(
            f"expected a model that reads {len(tokens)} tokens of a text, got {len(read)}: train "
            "it with a larger --max-tokens"
        )
    session = StreamingSession(client, "m")
    seconds, scores, states = [], [], []
    hidden = whole["state"][0].reshape(len(tokens), -1)
    for token in tokens:
        started = time.perf_counter()
        answer = session.feed(token)
        seconds.append(time.perf_counter() - started)
        scores.append(answer.outputs["scores"][0])
        states.append(session.saved.state[: hidden.shape[1]])
    apart = np.abs(np.array(scores) - whole["scores"][0])
    hidden_apart = np.abs(np.array(states, np.float32) - hidden)
    milliseconds = 1000 * np.array(seconds)
    return {
        "transport": client.url.partition(":")[0],
        "steps": len(tokens),
        "p50": float(np.percentile(milliseconds, 50)),
        "p95": float(np.percentile(milliseconds, 95)),
        "p99": float(np.percentile(milliseconds, 99)),
        "max": float(milliseconds.max()),
        "steps_per_second": len(tokens) / float(np.sum(seconds)),
        "largest_score_difference": float(apart.max()),
        "largest_state_difference": float(hidden_apart.max()),
        "steps_equal_bit_for_bit": int((np.maximum(apart.max(1), hidden_apart.max(1)) == 0).sum()),
    }


def show(row: dict[str, Any]) -> None:
    """Print one transport's figures."""
    print(
        f"{row['transport']}: {row['steps']:,} steps, {row['steps_per_second']:.0f}/s; ms p50 "
        f"{row['p50']:.2f}, p95 {row['p95']:.2f}, p99 {row['p99']:.2f}, max {row['max']:.1f}\n"
        f"  from the sequence: scores {row['largest_score_difference']:.1e}, states "
        f"{row['largest_state_difference']:.1e} at most; "
        f"{row['steps_equal_bit_for_bit']:,} steps equal bit for bit",
        flush=True,
    )


def wait(client: Client) -> None:
    """Until the server serves."""
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            client.status("m", timeout=1)
            return
        except ServingError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


if __name__ == "__main__":
    sys.exit(main())
