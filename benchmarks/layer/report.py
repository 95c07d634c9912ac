"""Tables of the layer benchmark, from what a run wrote to layer.json."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import geometric_mean, median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.layer.contest import Shape
from benchmarks.layer.memory import MEASURED

OURS = ("keras_gru", "keras_gru jit")
RIVALS = ("Keras", "Keras jit", "PyTorch", "Flax")
TITLES = {
    ("layer", "main"): "main grid",
    ("layer", "second"): "second grid, not tuned on",
    ("layer", "own"): "shapes of your own",
    ("bidirectional", ""): "Bidirectional",
    ("masks", ""): "Masked rows",
    ("steps", ""): "Whole training steps of a classifier",
    ("streaming", ""): "Streaming, time per step",
    ("one-step", ""): "One step of a cell per call",
    ("launch", ""): "A call that adds one",
}
_MICROSECONDS = {"streaming", "one-step", "launch"}


class Grid(NamedTuple):
    """A table to show."""

    title: str
    heading: list[str]
    rows: list[list[str]]
    note: str = ""


class Cell:
    """The times of one shape in one measure."""

    def __init__(self, contest: dict[str, Any], measure: str) -> None:
        self.shape = Shape(*contest["shape"])
        self.label = str(self.shape) + (" masked" if contest["masked"] else "")
        self.measure = measure
        entries = [one for one in contest["times"] if one["measure"] == measure]
        self.median = {one["contender"]: median(one["seconds"]) for one in entries}
        self.least = {one["contender"]: min(one["seconds"]) for one in entries}
        self.against = {one["contender"]: one["against"] for one in entries}
        self.difference = max(one["difference"] for one in entries)

    def ratio(self, contender: str, times: dict[str, float]) -> float:
        """Speed relative to the baseline; 1 for a baseline."""
        return times[self.against.get(contender) or contender] / times[contender]

    def leads(self, times: dict[str, float]) -> list[float]:
        """The fastest rival's time over keras_gru's: by default, and for its faster variant."""
        rival = min(times[name] for name in RIVALS if name in times)
        return [rival / times[OURS[0]], rival / min(times[name] for name in OURS)]

    def roofline(self, speed: float) -> float:
        """Share of the speed of a large matrix product that keras_gru reaches by default."""
        seconds: float = self.median["keras_gru"]
        return self.shape.flop(self.measure) / speed / seconds


def cells(results: dict[str, Any]) -> dict[tuple[str, str, str], list[Cell]]:
    """Group the cells by table, grid and measure."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for contest in results["contests"]:
        for measure in dict.fromkeys(one["measure"] for one in contest["times"]):
            key = (contest["table"], contest["grid"], measure)
            found.setdefault(key, []).append(Cell(contest, measure))
    return found


def grids(results: dict[str, Any], least: bool = False) -> Iterator[Grid]:
    """Every table, with medians or least times."""
    for (table, grid, measure), group in cells(results).items():
        exports = [name for name in group[0].median if name.endswith(" export")]
        title = f"{measure.capitalize()}, {TITLES[table, grid]}"
        if table != "layer":
            title = f"{TITLES[table, grid]}: {measure}"
        speed = max(results["gemm"]) if table == "layer" else None
        unit = "µs" if table in _MICROSECONDS else "ms"
        names = [name for name in group[0].median if name not in exports]
        yield _grid(f"{title} ({unit})", group, names, speed, least, unit)
        if exports:
            title = f"Exported models, {TITLES[table, grid]} ({unit})"
            yield _grid(title, group, exports, None, least, unit)
    if results["memory"] and not least:
        yield _memory(results["memory"])


def _grid(
    title: str, group: list[Cell], names: list[str], speed: float | None, least: bool, unit: str
) -> Grid:
    names = sorted(names, key=lambda name: name not in RIVALS)
    compared = [name for name in names if group[0].against[name] and name not in RIVALS]
    heading = ["B,T,D,U", *names, *(f"{name} ×{group[0].against[name]}" for name in compared)]
    if speed:
        heading += [f"{OURS[0]} ×best rival", "either ×best rival", "of roofline"]
    rows, ratios = [], []
    for cell in group:
        times = cell.least if least else cell.median
        found = [cell.ratio(name, times) for name in compared]
        if speed:
            found += cell.leads(times)
        ratios.append(found)
        scaled = (_digits(times[name] * (1e6 if unit == "µs" else 1e3)) for name in names)
        row = [cell.label, *scaled, *(f"{ratio:.2f}" for ratio in found)]
        rows.append([*row, f"{cell.roofline(speed):.0%}"] if speed else row)
    means = [f"**{geometric_mean(column):.2f}**" for column in zip(*ratios, strict=True)]
    rows.append(["geometric mean", *("" for _ in names), *means, *([""] if speed else [])])
    what = "Least times" if least else "Medians"
    note = f"{what}. Contenders differ by at most {max(c.difference for c in group):.0e}."
    return Grid(title, heading, rows, note)


def _memory(found: list[dict[str, Any]]) -> Grid:
    rows, ratios = [], []
    names = [name for name in MEASURED if all(name in one for one in found)]
    for one in found:
        ratios.append([max(one[name], 1) / max(one["Keras"], 1) for name in names[1:]])
        sizes = [f"{one[name] / 2**20:.1f}" for name in names]
        rows.append([str(Shape(*one["shape"])), *sizes, *(f"{ratio:.2f}" for ratio in ratios[-1])])
    means = [f"**{geometric_mean(column):.2f}**" for column in zip(*ratios, strict=True)]
    rows.append(["geometric mean", *[""] * len(names), *means])
    heading = ["B,T,D,U", *names, *(f"{name}, share of Keras'" for name in names[1:])]
    note = "Resident memory at its peak in a step, beyond what was resident before the first one."
    return Grid("Peak memory of a training step (MiB)", heading, rows, note)


def _digits(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def summary(results: dict[str, Any]) -> list[str]:
    """Describe the settings and the machine of the run."""
    lines = [f"{key}: {value}" for key, value in results["environment"].items()]
    if results.get("gemm"):
        low, high = (bound(results["gemm"]) / 1e9 for bound in (min, max))
        lines.append(f"large float32 matrix product: {high:.0f} GFLOP/s, at worst {low:.0f}")
    if results["contests"]:
        away = sum(contest["thrown_away"] for contest in results["contests"])
        disturbed = sum(contest["disturbed"] for contest in results["contests"])
        rounds = results["rounds"] * len(results["contests"])
        lines.append(f"rounds that count: {rounds}, thrown away for foreign load: {away}")
        if disturbed:
            lines.append(f"of those that count, disturbed by foreign load: {disturbed}")
    lines += [f"absent: {name} ({why})" for name, why in results["absent"].items()]
    return lines


def print_tables(results: dict[str, Any], console: Console) -> None:
    """Print medians to the terminal."""
    for grid in grids(results):
        table = Table(title=grid.title, caption=grid.note, title_justify="left")
        for index, name in enumerate(grid.heading):
            table.add_column(name, justify="right" if index else "left")
        for index, row in enumerate(grid.rows):
            last = index == len(grid.rows) - 1
            table.add_row(*(text.strip("*") for text in row), style="bold" if last else None)
        console.print(table)
    for line in summary(results):
        console.print(line, highlight=False)


def markdown(results: dict[str, Any]) -> str:
    """Medians and least times as Markdown."""
    lines = [*(f"- {line}" for line in summary(results)), ""]
    for heading, least in (("Medians", False), ("Least times", True)):
        lines += [f"## {heading}", ""]
        for grid in grids(results, least):
            lines += [f"### {grid.title}", "", f"| {' | '.join(grid.heading)} |"]
            lines += [f"|---|{'---:|' * (len(grid.heading) - 1)}"]
            lines += [f"| {' | '.join(row)} |" for row in grid.rows]
            lines += ["", grid.note, ""]
    return "\n".join(lines)
