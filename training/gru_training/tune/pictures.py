"""Pictures of a search."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from gru_training.plots.picture import save_figure
from gru_training.search_ranges import Floats, OneOf, written
from gru_training.tune.search_space import SearchSpace
from gru_training.tune.study import Study, Trial

_COMPLETE, _STOPPED, _BEST = "#0b63b5", "#b0b0b0", "#c0392b"
_PER_ROW = 3


def draw_history(study: Study, path: Path) -> None:
    """Draw the criterion of each trial, and the best so far."""
    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    axes = figure.subplots()
    trials = [each for each in study.trials() if each.value is not None]
    done = [each for each in trials if each.state == "complete"]
    stopped = [each for each in trials if each.state == "stopped"]
    for of, mark, color, label in (
        (stopped, "x", _STOPPED, "stopped early"),
        (done, "o", _COMPLETE, "complete"),
    ):
        if of:
            axes.plot(
                [each.number for each in of],
                [_value(each) for each in of],
                mark,
                color=color,
                markersize=5,
                label=label,
            )
    better = np.maximum if study.criterion.higher_is_better else np.minimum
    axes.step(
        [each.number for each in done],
        better.accumulate([_value(each) for each in done]),
        where="post",
        color=_BEST,
        linewidth=1.2,
        label="best so far",
    )
    axes.set_xlabel("trial")
    axes.set_ylabel(study.criterion.name)
    _in_style(axes, study)
    _near(axes, done)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.grid(alpha=0.25)
    save_figure(figure, path)


def draw_settings(
    space: SearchSpace, study: Study, importances: Mapping[str, float], path: Path
) -> None:
    """Draw the criterion of the complete trials over each setting, the most important first."""
    names = sorted(space.choices, key=lambda name: -importances.get(name, 0.0))
    rows = math.ceil(len(names) / _PER_ROW)
    figure = Figure(figsize=(9, 2.6 * rows), dpi=120, layout="constrained")
    grid = figure.subplots(rows, min(_PER_ROW, len(names)), squeeze=False, sharey=True).ravel()
    done = [each for each in study.trials() if each.state == "complete"]
    best = study.best()
    for axes, name in zip(grid, names, strict=False):
        choice = space.choices[name]
        places = [each.settings[name] for each in done]
        if isinstance(choice, OneOf):
            places = [choice.values.index(each) for each in places]
            axes.set_xticks(range(len(choice.values)), list(map(written, choice.values)))
            axes.set_xlim(-0.5, len(choice.values) - 0.5)
        elif isinstance(choice, Floats) and choice.log:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_xlim(choice.low * 0.9, choice.high * 1.1)
        else:
            room = 0.05 * (choice.high - choice.low)
            axes.set_xlim(choice.low - room, choice.high + room)
        axes.plot(places, [_value(each) for each in done], "o", color=_COMPLETE, markersize=4)
        if best is not None:
            at = places[done.index(best)]
            axes.plot(at, _value(best), "o", color=_BEST, markersize=9, mfc="none")
        share = f" ({importances[name]:.0%})" if name in importances else ""
        axes.set_title(f"{name}{share}", fontsize="medium")
        axes.grid(alpha=0.25)
        _in_style(axes, study)
        _near(axes, done)
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    save_figure(figure, path)


def _value(trial: Trial) -> float:
    return math.nan if trial.value is None else trial.value


def _in_style(axes: Axes, study: Study) -> None:
    style = study.criterion.style
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, style)))


def _near(axes: Axes, done: list[Trial]) -> None:
    """Show the better half of the trials well: some that failed to learn lie far off."""
    values = np.array([_value(each) for each in done])
    if len(values) < _PER_ROW:
        return
    low, high = np.quantile(values, [0.0, 1.0])
    middle_low, middle_high = np.quantile(values, [0.1, 0.9])
    room = 2 * (middle_high - middle_low) or 1e-6
    axes.set_ylim(
        max(low, middle_low - room) - 0.1 * room, min(high, middle_high + room) + 0.1 * room
    )
