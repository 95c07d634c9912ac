"""The plot of the layer benchmark: speed relative to the baseline, per shape and contender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.layer.report import RIVALS, TITLES, Cell, cells

_COLOURS = {
    "Keras jit": "#bcbd22",
    "PyTorch": "#d62728",
    "Flax": "#9467bd",
    "keras_gru": "#1f77b4",
    "keras_gru jit": "#17becf",
    "keras_gru export": "#2ca02c",
    "keras_gru stateful": "#17becf",
    "keras_gru cell": "#2ca02c",
    "GRUEncoder": "#2ca02c",
}


def save_plot(results: dict[str, Any], path: Path) -> bool:
    """One panel per table, with one bar per shape and contender; False without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    panels = cells(results)
    if not panels:
        return True
    figure = Figure(figsize=(13, 2.7 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, ((table, grid, measure), group) in zip(axes, panels.items(), strict=True):
        _draw(axis, group)
        axis.set_title(f"{TITLES[table, grid]}: {measure}", fontsize=10, loc="left")
    temporary = path.with_name(f".new.{path.name}")
    figure.savefig(temporary, dpi=100)
    temporary.replace(path)
    return True


def _draw(axis: Any, group: list[Cell]) -> None:
    against = group[0].against
    names = sorted((name for name in against if against[name]), key=lambda n: n not in RIVALS)
    width = 0.8 / len(names)
    for index, name in enumerate(names):
        at = [row + (index - (len(names) - 1) / 2) * width for row in range(len(group))]
        ratios = [cell.ratio(name, cell.median) for cell in group]
        label = name if against[name] == "Keras" else f"{name} (to {against[name]})"
        colour = _COLOURS.get(name, "#7f7f7f")
        bars = axis.bar(at, [r - 1 for r in ratios], width, 1, label=label, color=colour)
        if name not in RIVALS:
            digits = [f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" for ratio in ratios]
            axis.bar_label(bars, digits, fontsize=7)
    axis.set_yscale("log", base=2)
    axis.yaxis.set_major_formatter("{x:g}×")
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xticks(range(len(group)), [cell.label for cell in group], fontsize=8)
    axis.set_ylabel("times as fast\nas Keras", fontsize=8)
    axis.margins(x=0.01, y=0.15)
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.5), max(high, 2))  # small differences must look small
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
