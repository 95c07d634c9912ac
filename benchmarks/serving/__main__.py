"""Speed of the server, compared with empty servers, the bare model and other servers.

    python -m benchmarks.serving [--seconds 3] [--rounds 3] [--out build/bench-serving]

First the server is started again and again, with either runtime, beside a process that only imports
TensorFlow and loads the model. Then all servers run at once on this machine, load goes to one at a
time, in interleaved rounds; the table shows medians. Before any timing the answers of all servers
are compared with the model's. Writes a table to the terminal, and `serving.json` and `serving.png`
into the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.serving.load_generator import missing_tools
from benchmarks.serving.report import goals, print_tables, save_plot
from benchmarks.serving.rivals import RIVALS
from benchmarks.serving.servers import LOADS, Bench, Target


def rounds(targets: list[Target], count: int, seconds: int) -> Iterator[str]:
    """Put every load on every target, again and again; yields what is done next."""
    for number in range(count):
        for load in LOADS:
            for target in targets:
                if load in target.loads:
                    clients, rows = load
                    yield f"round {number + 1}/{count}: {clients} clients x {rows}: {target.name}"
                    measured = target.load(clients, rows, seconds)
                    target.results.setdefault(load, []).append(measured)


def main() -> int:
    """Parse, start, measure, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=3, help="per measurement (default: 3)")
    parser.add_argument("--rounds", type=int, default=3, help="of all measurements (default: 3)")
    parser.add_argument("--out", type=Path, default=Path("build/bench-serving"), help="folder")
    parser.add_argument("--no-rivals", action="store_true", help="leave other servers out")
    parser.add_argument("--only-own", action="store_true", help="leave empty servers out as well")
    arguments = parser.parse_args()
    missing = missing_tools()
    if missing:
        print("\n".join(missing), file=sys.stderr)
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        bench = Bench(Path(folder), stack)
        print("starting servers ...")
        starts, memory = bench.starts(arguments.rounds)
        batching = ("--enable_batching", bench.batching_parameters())
        targets = [
            bench.bare(),
            bench.bare("onnx"),
            *bench.own("default flags"),
            *bench.own("TensorFlow", "--runtime=tensorflow"),
            *bench.own("batching", *batching),
            *bench.own("TensorFlow, batching", *batching, "--runtime=tensorflow"),
            *(bench.empty(kind) for kind in ("grpc-aio", "grpc-threads", "asgi")),
        ]
        if arguments.only_own:
            targets = targets[:-3]
        if not (arguments.no_rivals or arguments.only_own):
            targets += filter(None, map(bench.rival, RIVALS))
        for step in rounds(targets, arguments.rounds, arguments.seconds):
            print(f"\r\033[K  {step}", end="", flush=True)
        print("\r\033[K", end="")
    results = {
        "cpus": os.cpu_count(),
        "versions": bench.versions,
        "left_out": bench.left_out,
        "start_seconds": starts,
        "resident_mb": memory,
        "loads": {
            target.name: [
                {"clients": load[0], "rows": load[1], "rounds": [asdict(one) for one in several]}
                for load, several in target.results.items()
            ]
            for target in targets
        },
    }
    (arguments.out / "serving.json").write_text(json.dumps(results, indent=1))
    print_tables(results)
    for line in goals(results):
        print(line)
    save_plot(results, arguments.out / "serving.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
