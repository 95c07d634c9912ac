"""The differences from the reference, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from gru_training.compare.comparison import Comparison
from gru_training.compare.estimates import Estimate
from gru_training.plots.picture import save_figure

_COLOURS = {"better": "#0b63b5", "worse": "#c0392b"}
_UNDECIDED, _SIMPLE = "#444444", "#9a9a9a"
_MOST_LETTERS = 36


def draw_differences(comparison: Comparison, path: Path) -> None:
    """Draw a panel for each measure, with each model's difference and its interval.

    The reference is the line at zero. Simple models that are far off are placed at the edge, with
    an arrow and their value, so that the runs can be told apart.

    Args:
        comparison: Of two or more runs.
        path: The PNG file.
    """
    others = comparison.contenders[1:]
    names = list(comparison.styles)
    figure = Figure(
        figsize=(3.0 + 3.3 * len(names), 1.75 + 0.36 * len(others)), dpi=120, layout="constrained"
    )
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        _draw_panel(axes, comparison, name)
    panels[0].set_yticks(range(len(others)), [_label(each.name) for each in others])
    panels[0].set_ylim(len(others) - 0.4, -0.6)
    figure.suptitle(
        f"Difference from {_label(comparison.reference.name)}, with 95 % intervals", fontsize=11
    )
    if any(each.verdict for each in others):
        figure.supxlabel(
            f"Blue: better, red: worse, by the test of {comparison.deciding} with Holm's correction"
            + ("; squares: simple models" if any(not each.is_run for each in others) else ""),
            fontsize=8, color=_UNDECIDED,
        )  # fmt: skip
    save_figure(figure, path)


def _draw_panel(axes: Axes, comparison: Comparison, name: str) -> None:
    scale = 100 if comparison.styles[name].endswith("%") else 1
    others = comparison.contenders[1:]
    differences = [
        each.measures[name].difference if name in each.measures else None for each in others
    ]
    runs = [found for each, found in zip(others, differences, strict=True) if each.is_run]
    low, high = _limits(runs, differences)
    axes.axvline(0, color="black", linewidth=1)
    for row, (each, found) in enumerate(zip(others, differences, strict=True)):
        verdict = each.verdict if name == comparison.deciding else ""
        colour = _COLOURS.get(verdict, _UNDECIDED) if each.is_run else _SIMPLE
        if found is None:
            continue
        if not low <= found.value <= high:
            _draw_far(axes, row, found.value * scale, found.value > high, colour)
            continue
        if found.low is not None and found.high is not None:
            axes.plot(
                [max(found.low, low) * scale, min(found.high, high) * scale], [row, row],
                color=colour, linewidth=2,
            )  # fmt: skip
        axes.plot(found.value * scale, row, "o" if each.is_run else "s", color=colour, markersize=6)
    axes.set_xlim(low * scale, high * scale)
    arrow = "better →" if comparison.higher_is_better[name] else "← better"
    reference = comparison.reference.measures[name].value.value
    unit = "points" if scale == 100 else "difference"
    axes.set_title(name, fontsize=10)
    axes.set_xlabel(f"{unit} from {reference:{comparison.styles[name]}}, {arrow}", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter(FuncFormatter(_signed))
    axes.grid(axis="x", alpha=0.25)
    for row, each in enumerate(others):
        if row and not each.is_run and others[row - 1].is_run:
            axes.axhline(row - 0.5, color=_SIMPLE, linewidth=0.6, linestyle=":")


def _limits(
    runs: Sequence[Estimate | None], everyone: Sequence[Estimate | None]
) -> tuple[float, float]:
    """Limits that fit all runs, zero, and simple models that are not much further off."""
    needed = [0.0, *_ends(runs)]
    low, high = min(needed), max(needed)
    room = 1.5 * (high - low)
    near = [each for each in everyone if each and low - room <= each.value <= high + room]
    low, high = min([low, *_ends(near)]), max([high, *_ends(near)])
    margin = 0.08 * (high - low) or 0.01
    return low - margin, high + margin


def _ends(estimates: Sequence[Estimate | None]) -> list[float]:
    ends = []
    for each in estimates:
        if each is not None:
            ends += [end for end in (each.low, each.value, each.high) if end is not None]
    return ends


def _draw_far(axes: Axes, row: int, value: float, right: bool, colour: str) -> None:
    text = _signed(value)
    axes.annotate(
        f"{text} ▸" if right else f"◂ {text}", (float(right), row),
        xycoords=("axes fraction", "data"), xytext=(-4 if right else 4, 0),
        textcoords="offset points", ha="right" if right else "left", va="center",
        color=colour, fontsize=8,
    )  # fmt: skip


def _signed(value: float, _: object = None) -> str:
    return f"{value:+.3g}".replace("-", "−") if value else "0"


def _label(name: str) -> str:
    """The name, shortened in the middle if it is long: names of runs often differ at the end."""
    if len(name) > _MOST_LETTERS:
        half = _MOST_LETTERS // 2
        name = f"{name[: half - 1]}…{name[-half:]}"
    return name.replace("$", r"\$")
