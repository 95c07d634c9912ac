"""A question about the future of a series, and a picture of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demo.server import ask
from demo.terminal import console


def ask_about_co2(run: Path, picture: Path, rest: str, grpc: str) -> int:
    """Ask for a forecast of half a year that the model has never seen, and draw it.

    Three years of raw measurements go in. What was measured afterwards is in the history of a
    later test window.

    Returns:
        How many answers are no better than repeating the last measurement.
    """
    import numpy as np
    from rich.table import Table

    with np.load(run / "test_windows.npz") as windows:
        histories, origins = windows["histories"], windows["origins"]
        steps = windows["forecasts"].shape[1]
    asked = max(i for i, origin in enumerate(origins) if origin + steps <= origins[-1])
    gap = origins[-1] - origins[asked]
    measured = histories[-1, len(histories[-1]) - gap :][:steps, 0]
    answers = ask(rest, grpc, "co2", {"history": histories[asked : asked + 1]})
    forecast = answers["gRPC"]["forecast"][0, :, 0]
    bounds = answers["gRPC"]["quantiles"][0, :, 0]
    first = json.loads((run / "series.json").read_text("utf-8"))["first_time"]
    weeks = np.datetime64(first, "D") + 7 * np.arange(
        origins[asked] - histories.shape[1], origins[asked] + steps
    )
    table = Table(title="CO2 at Mauna Loa in ppm, a half year that the model never saw")
    for name in ("week", "REST", "gRPC", "80 % interval", "95 % interval", "measured"):
        table.add_column(name)
    for step in range(0, steps, 5):
        low, lower, _, upper, high = bounds[step]
        values = [f"{answer['forecast'][0, step, 0]:.1f}" for answer in answers.values()]
        intervals = [f"{lower:.1f}-{upper:.1f}", f"{low:.1f}-{high:.1f}"]
        table.add_row(str(weeks[step - steps]), *values, *intervals, f"{measured[step]:.1f}")
    console().print(table)
    _draw(picture, weeks, histories[asked, :, 0], measured, forecast, bounds)
    unchanged = np.abs(histories[asked, -1, 0] - measured).mean()
    errors = [np.abs(answer["forecast"][0, :, 0] - measured).mean() for answer in answers.values()]
    return sum(error >= unchanged for error in errors)


def _draw(
    picture: Path, weeks: Any, history: Any, measured: Any, forecast: Any, bounds: Any
) -> None:
    """The picture of the forecast with its intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    past, future = weeks[: len(history)], weeks[len(history) :]
    for low, name, shade in ((0, "95 % interval", 0.16), (1, "80 % interval", 0.30)):
        axes.fill_between(
            future, bounds[:, low], bounds[:, -1 - low], alpha=shade, color="#0b63b5", lw=0,
            label=name,
        )  # fmt: skip
    axes.plot(past, history, color="#333333", lw=1, label="history that was sent")
    axes.plot(future, measured, ".", color="#333333", ms=4, label="measured later")
    axes.plot(future, forecast, color="#0b63b5", lw=1.5, label="forecast")
    axes.set_ylabel("CO2 (ppm)")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small", loc="upper left")
    figure.savefig(picture)
