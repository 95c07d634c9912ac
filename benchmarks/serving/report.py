"""Tables, goals and the picture of the serving benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OWN = "this server, "
# (goal, numerator, denominator, figure of a load, ratio aimed at)
_RATIOS = (
    (
        "32 clients, one row: gRPC with batching / empty grpc-python server (asyncio)",
        (OWN + "gRPC, batching", (32, 1)),
        ("empty server, grpc-aio", (32, 1)),
        0.7,
    ),
    (
        "32 clients, one row: gRPC with batching / empty grpc-python server (threads)",
        (OWN + "gRPC, batching", (32, 1)),
        ("empty server, grpc-threads", (32, 1)),
        0.7,
    ),
    (
        "32 clients, one row: REST with batching / empty Starlette on uvicorn",
        (OWN + "REST, batching", (32, 1)),
        ("empty server, asgi", (32, 1)),
        0.7,
    ),
    (
        "4 clients, 32 rows: gRPC / bare session",
        (OWN + "gRPC, default flags", (4, 32)),
        ("bare session, threads", (4, 32)),
        0.7,
    ),
    (
        "4 clients, 32 rows: REST / bare session",
        (OWN + "REST, default flags", (4, 32)),
        ("bare session, threads", (4, 32)),
        0.7,
    ),
    (
        "32 clients, one row: REST with batching / FastAPI + model.predict",
        (OWN + "REST, batching", (32, 1)),
        ("FastAPI + model.predict", (32, 1)),
        5.0,
    ),
)
_AGAINST_BARE = (
    ("ONNX Runtime's call, one row", "bare onnx session, threads", (1, 1), "p50", 0.3),
    ("one request at a time over gRPC", OWN + "gRPC, default flags", (1, 1), "p50", 1.0),
    ("one request at a time over REST", OWN + "REST, default flags", (1, 1), "p50", 0.8),
    ("4 clients, 32 rows over gRPC", OWN + "gRPC, default flags", (4, 32), "rate", 1.1),
    ("4 clients, 32 rows over REST", OWN + "REST, default flags", (4, 32), "rate", 1.1),
)
_ADDED = (("gRPC", 500), ("REST", 900))
_FRAMEWORKS = ("MLServer", "BentoML", "KServe")


class _Medians:
    """Medians over the rounds, by target and load."""

    def __init__(self, results: dict[str, Any]) -> None:
        self._values = {
            (name, (load["clients"], load["rows"])): {
                key: statistics.median(one[key] for one in load["rounds"])
                for key in ("rate", "p50", "p99")
            }
            for name, loads in results["loads"].items()
            for load in loads
        }

    def get(self, name: str, load: tuple[int, int]) -> dict[str, float] | None:
        return self._values.get((name, load))


def print_tables(results: dict[str, Any]) -> None:
    """The results, one line per target."""
    from rich.console import Console
    from rich.table import Table

    medians = _Medians(results)
    table = Table(title="requests/s, and p50 / p99 in ms; medians of the rounds")
    table.add_column("")
    loads = sorted({load for _, load in medians._values})
    for clients, rows in loads:
        table.add_column(f"{clients} clients x {rows} rows", justify="right")
    for name in results["loads"]:
        cells = []
        for load in loads:
            value = medians.get(name, load)
            cells.append(
                ""
                if value is None
                else f"{value['rate']:,.0f}  {value['p50'] / 1e3:.2f} / {value['p99'] / 1e3:.2f}"
            )
        table.add_row(name, *cells)
    console = Console(width=120)
    console.print(table)
    for name, version in results["versions"].items():
        console.print(f"{name}: {version}")
    for name, why in results["left_out"].items():
        console.print(f"left out: {name}: {why}")


def goals(results: dict[str, Any]) -> Iterator[str]:
    """The ratios that matter, each beside its goal."""
    medians = _Medians(results)
    bare = medians.get("bare session, threads", (1, 1))
    for transport, allowed in _ADDED:
        value = medians.get(f"{OWN}{transport}, default flags", (1, 1))
        if bare and value:
            added = value["p50"] - bare["p50"]
            yield f"1 client: {transport} adds {added:.0f} us to the bare session (goal: {allowed})"
    for text, above, below, goal in _RATIOS:
        first, second = medians.get(*above), medians.get(*below)
        if first and second:
            yield f"{text}: {first['rate'] / second['rate']:.2f} (goal: {goal})"
    frameworks = {
        name: value["rate"] for name in _FRAMEWORKS if (value := medians.get(name, (32, 1)))
    }
    own = medians.get(OWN + "REST, batching", (32, 1))
    if frameworks and own:
        best = max(frameworks, key=lambda name: frameworks[name])
        ratio = own["rate"] / frameworks[best]
        yield (
            f"32 clients, one row: REST with batching / {best}, the fastest framework: "
            f"{ratio:.2f} (goal: above 1)"
        )
    yield from _runtimes(medians)
    bare_start = statistics.median(results["start_seconds"]["import and load"])
    for name, memory in results["resident_mb"].items():
        start = statistics.median(results["start_seconds"][name])
        yield (
            f"{name}: first answer {start:.2f} s after the process starts (TensorFlow's import and "
            f"the loading of the model alone: {bare_start:.2f} s), "
            f"{statistics.median(memory):.0f} MB resident"
        )


def _runtimes(medians: _Medians) -> Iterator[str]:
    """Compare ONNX Runtime with TensorFlow: times and rates as ratios."""
    bare = "bare session, threads"
    for text, name, load, what, goal in _AGAINST_BARE:
        first, second = medians.get(name, load), medians.get(bare, load)
        if first and second:
            ratio = first[what] / second[what]
            yield f"{text}, {what} against the bare session: {ratio:.2f} (goal: {goal})"
    for transport, goal in (("REST", 1.3), ("gRPC", 1.15)):
        first = medians.get(f"{OWN}{transport}, batching", (32, 1))
        second = medians.get(f"{OWN}{transport}, TensorFlow, batching", (32, 1))
        if first and second:
            yield (
                f"32 clients, one row, batching, {transport}: {first['rate'] / second['rate']:.2f} "
                f"times the rate with TensorFlow (goal: {goal})"
            )


def save_plot(results: dict[str, Any], file: Path) -> None:
    """Requests per second of 32 clients, as bars with a dot for every round."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    medians = _Medians(results)
    names = [name for name in results["loads"] if medians.get(name, (32, 1))]
    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(names) + 1.5), layout="constrained")
    for i, name in enumerate(names):
        load = next(
            one for one in results["loads"][name] if (one["clients"], one["rows"]) == (32, 1)
        )
        rates = [one["rate"] for one in load["rounds"]]
        color = "C0" if name.startswith(OWN) else "0.7" if name.startswith("empty") else "C1"
        axes.barh(i, statistics.median(rates), color=color)
        axes.plot(rates, [i] * len(rates), "k.", markersize=4)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("requests per second, 32 clients, one row of 50 tokens each")
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
