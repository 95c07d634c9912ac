"""The results of a load test: figures, a table, a picture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.errors import PlotError
from gru_serving.load_test.load import LoadResult
from gru_serving.load_test.plan import LoadPlan

_QUANTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
_BUSY = 0.9


def summarize(plan: LoadPlan, result: LoadResult) -> dict[str, Any]:
    """The figures, as JSON has them.

    Latencies are in milliseconds, of the requests answered OK: `latency` from the time a request
    was due, `service` from the time it was sent. In a closed loop the two are one.
    """
    good = result.codes == "OK"
    latency = 1000 * (result.done - result.due)[good]
    service = 1000 * (result.done - result.sent)[good]
    return {
        "url": plan.url,
        "loop": "closed" if plan.rate is None else "open",
        "concurrency": plan.concurrency,
        "rate": plan.rate,
        "arrivals": None if plan.rate is None else plan.arrivals,
        "processes": plan.processes,
        "seconds": plan.seconds,
        "requests": len(result.codes),
        "ok": int(good.sum()),
        "errors": dict(Counter(result.codes[~good].tolist())),
        "throughput": result.answered / plan.seconds,
        "latency": _quantiles(latency),
        "service": _quantiles(service),
        "generator_cpu": round(result.cpu, 3),
        "generator_was_the_limit": result.cpu > _BUSY,
    }


def show(summary: dict[str, Any]) -> str:
    """The figures for people."""
    if summary["loop"] == "closed":
        load = f"closed loop, {summary['concurrency']} clients"
    else:
        load = f"open loop, {summary['rate']:g} requests/s due ({summary['arrivals']})"
    lines = [
        f"{summary['url']}: {load}, {summary['seconds']:g} s, {summary['processes']} sending "
        "processes",
        f"  {summary['requests']:,} requests, {summary['ok']:,} OK; "
        f"{summary['throughput']:,.1f} answers/s",
        f"  {'ms':<22}" + "".join(f"{name:>9}" for name in ("mean", *_QUANTILES)),
    ]
    rows = {"latency": "latency"}
    if summary["loop"] == "open":
        rows = {"latency": "latency, since due", "service": "once sent"}
    for key, name in rows.items():
        figures = summary[key]
        cells = "".join(
            f"{figures[one]:>9.2f}" if figures else f"{'-':>9}" for one in ("mean", *_QUANTILES)
        )
        lines.append(f"  {name:<22}{cells}")
    for code, count in sorted(summary["errors"].items()):
        lines.append(f"  errors: {code} {count:,}")
    if summary["generator_was_the_limit"]:
        lines.append(
            f"  a sending process used {summary['generator_cpu']:.0%} of a core: the generator may "
            "be the limit; use more --processes"
        )
    return "\n".join(lines)


def plot(plan: LoadPlan, result: LoadResult, path: Path) -> None:
    """Draw latency over quantiles, and over time.

    Raises:
        PlotError: matplotlib is not installed, or cannot write such a file.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import NullLocator, ScalarFormatter
    except ImportError:
        raise PlotError("a picture needs matplotlib: pip install 'keras-gru[plot]'") from None
    good = result.codes == "OK"
    latency = 1000 * (result.done - result.due)[good]
    if len(latency) == 0:
        raise PlotError("there is nothing to draw: no request was answered")
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    ordered = np.sort(latency)
    beyond = 1 - (np.arange(len(ordered)) + 0.5) / len(ordered)
    kinds = {"latency since due": ordered}
    if plan.rate is not None:
        kinds["once sent"] = np.sort(1000 * (result.done - result.sent)[good])
    for name, values in kinds.items():
        left.plot(1 / beyond, values, label=name)
    ticks = [(1, "0"), (2, "50"), (10, "90"), (100, "99"), (1000, "99.9"), (10000, "99.99")]
    ticks = [(at, name) for at, name in ticks if at <= 2 * len(ordered)]
    left.set(xscale="log", xlabel="percentile", ylabel="ms")
    left.set_xticks([at for at, _ in ticks], [name for _, name in ticks])
    left.xaxis.set_minor_locator(NullLocator())
    left.grid(alpha=0.3)
    left.legend()
    right.scatter(result.due[good] - plan.warmup, latency, s=3, alpha=0.4)
    right.scatter(
        result.due[~good] - plan.warmup,
        1000 * (result.done - result.due)[~good],
        s=8,
        color="tab:red",
    )
    right.set_title(f"{int((~good).sum())} errors (red)", fontsize="medium")
    right.set(xlabel="seconds", ylabel="ms since due")
    for ax in (left, right):
        if ordered[-1] > 20 * ordered[len(ordered) // 2]:
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(ScalarFormatter())
        else:
            ax.set_ylim(bottom=0)
    loop = "closed loop" if plan.rate is None else f"open loop, {plan.rate:g}/s"
    figure.suptitle(f"{plan.url}, {loop}")
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise PlotError(f"{path}: cannot be written: {error}") from None


def _quantiles(milliseconds: np.ndarray) -> dict[str, float] | None:
    if len(milliseconds) == 0:
        return None
    values = np.percentile(milliseconds, list(_QUANTILES.values()))
    named = dict(zip(_QUANTILES, values.tolist(), strict=True))
    return {"mean": float(milliseconds.mean()), **named}
