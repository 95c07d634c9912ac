"""The report of a search: the trials, the best settings, and the influence of each setting."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot, rc_context
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState
from optuna.visualization.matplotlib import plot_optimization_history, plot_slice

from gru_training.criterion import ERRORS_TO_BEAT_BY_FEW
from gru_training.data.problems import counted
from gru_training.errors import RunDirectoryError
from gru_training.plots import save_figure
from gru_training.runs.directory import TaskRun, write_whole
from gru_training.runs.report_page import markdown_table, write_report_page
from gru_training.search_ranges import written
from gru_training.task import Comparable, Task
from gru_training.tune.study import REASON, STATES, Found, complete_trials

_MIN_TRIALS = 8
_SHOWN_TRIALS = 20


@dataclass(frozen=True)
class FinalRun:
    """A training with the chosen settings, and its result on the test rows."""

    path: Path
    seed: int
    measure: str = ""
    """Name of the measure on test rows; empty if the task compares no runs."""
    test: float = math.nan
    style: str = ".4f"

    @classmethod
    def of(cls, task: Task, run: TaskRun, seed: int) -> "FinalRun":
        """Record a run of this seed."""
        if not isinstance(task, Comparable):
            return cls(run.path, seed)
        measure = task.outcomes(run, None, run).model.measures[0]
        return cls(run.path, seed, measure.name, measure.value, measure.style)


def summary(found: Found, finals: Sequence[FinalRun]) -> list[str]:
    """Summarise a search in a few lines."""
    criterion, style = found.criterion, found.criterion.style
    states = [each.state for each in found.study.get_trials(deepcopy=False)]
    lines = [
        f"{counted(len(states) - states.count(TrialState.WAITING), 'trial')}: "
        f"{states.count(TrialState.COMPLETE)} complete, {states.count(TrialState.PRUNED)} stopped "
        f"early, {states.count(TrialState.FAIL)} failed."
    ]
    best, before = found.best, found.defaults
    line = (
        f"Best {criterion.name} on the validation rows: {best.value:{style}} (trial {best.number})"
    )
    if before is not None and before is not best:
        line += f", against {before.value:{style}} with the defaults"
        if found.error is not None:
            line += f": better by {found.gain:{style}}, standard error {found.error:{style}}"
    lines.append(f"{line}.")
    if criterion.caution:
        lines.append(f"Caution: {criterion.caution}.")
    if found.keeps_defaults and found.error is None:
        lines.append("The defaults are kept: there is too little to choose by.")
    elif found.keeps_defaults:
        gain = "a gain of less than a standard error"
        if criterion.caution:
            gain = f"a gain of less than {ERRORS_TO_BEAT_BY_FEW:g} standard errors on so few rows"
        lines.append(
            f"The defaults are kept: chance alone often gives the best of many trials {gain}."
        )
    if finals and finals[0].measure:
        values = np.array([each.test for each in finals])
        first = finals[0]
        spread = "" if len(finals) == 1 else f" ± {values.std(ddof=1):{first.style}}"
        runs = "run" if len(finals) == 1 else f"{len(finals)} runs"
        lines.append(
            f"Test rows, final {runs}: {first.measure} {values.mean():{first.style}}{spread}."
        )
    return lines


def write_report(found: Found, finals: Sequence[FinalRun], again: str) -> Path:
    """Write report.md, report.html, trials.csv and the pictures.

    Args:
        found: Result of the search.
        finals: Runs with its settings.
        again: Command that trains with the settings of the best trial.

    Returns:
        The page.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    folder, criterion, trials = found.folder, found.criterion, _trials(found)
    lines = ["# Search for settings", ""]
    lines += [f"{line}\n" for line in summary(found, finals)]
    lines += _best_settings(found)
    if again:
        them = "those of the best trial all the same" if found.keeps_defaults else "them again"
        lines += ["", f"To train with {them}:", "", f"```\n{again}\n```"]
    if finals and finals[0].measure:
        rows = [(each.path.name, each.seed, f"{each.test:{each.style}}") for each in finals]
        lines += ["", "## Final training", ""]
        lines += markdown_table([("run", "seed", f"test {finals[0].measure}"), *rows])
    lines += ["", "## The search", "", "![trials over time](history.png)", ""]
    lines += ["![the criterion over each setting](settings.png)", "", "## Trials", ""]
    shown = trials[trials["state"] == "complete"].drop(columns=["state", REASON])
    shown = shown.sort_values(criterion.name, ascending=not criterion.higher_is_better)
    shown = shown.head(_SHOWN_TRIALS)
    shown[criterion.name] = shown[criterion.name].map(f"{{:{criterion.style}}}".format)
    lines += markdown_table([shown.columns, *(map(written, row) for row in shown.to_numpy())], 0)
    more = len(trials) - len(shown)
    lines += ["", f"These are the best; the other {more} are in trials.csv."] if more else []
    lines += ["", "The validation rows chose among the trials: what the best one reaches there is "
              "better than what it reaches on new rows. Test rows were not read by the "
              "search."]  # fmt: skip
    try:
        _draw(found)
        write_whole(folder / "trials.csv", trials.to_csv(index=False))
        write_whole(folder / "report.md", "\n".join(lines) + "\n")
    except OSError as error:
        raise RunDirectoryError(f"cannot write the report of {folder}: {error}") from error
    return write_report_page(folder) or folder / "report.md"


def _best_settings(found: Found) -> list[str]:
    done, importances = complete_trials(found.study), dict[str, float]()
    if len(done) >= _MIN_TRIALS and len({each.value for each in done}) > 2:
        importances = get_param_importances(found.study, evaluator=PedAnovaImportanceEvaluator())
    rows = [
        (
            name,
            written(found.best.params.get(name)),
            written(default),
            found.space.choices[name],
            f"{importances[name]:.0%}" if name in importances else "–",
        )
        for name, default in found.space.defaults().items()
    ]
    lines = ["## Best settings", ""]
    lines += markdown_table([("setting", "best", "default", "searched", "importance"), *rows])
    if importances:
        lines += ["", "Importance: the share of the differences between trials that the setting "
                  "explains (PED-ANOVA, Watanabe et al., 2023)."]  # fmt: skip
    return lines


def _trials(found: Found) -> pd.DataFrame:
    """Return a row for each trial, in order."""
    table = found.study.trials_dataframe(
        ("number", "state", "value", "duration", "params", "user_attrs")
    )
    table.columns = table.columns.str.removeprefix("params_").str.removeprefix("user_attrs_")
    names = {
        "number": "trial",
        "state": "state",
        "value": found.criterion.name,
        "duration": "seconds",
    }
    table["state"] = table["state"].map({state.name: name for state, name in STATES.items()})
    table = table.dropna(subset="state").rename(columns=names)
    table["seconds"] = table["seconds"].dt.total_seconds().round()
    return table.reindex(columns=[*names.values(), *found.space.choices, REASON])


def _draw(found: Found) -> None:
    """Draw the trials over time and over each setting."""
    study, name = found.study, found.criterion.name
    values = [each.value for each in complete_trials(study)]
    low, high = np.nanquantile(np.array(values, float), [0.1, 0.9])
    room = 2 * (high - low) or 1e-6
    for picture in ("history", "settings"):
        with rc_context(), warnings.catch_warnings():  # it sets a style for the whole process
            warnings.simplefilter("ignore")  # it is experimental; settings may have one value alone
            if picture == "history":
                drawn: Any = plot_optimization_history(study, target_name=name)
            else:
                drawn = plot_slice(study, list(found.space.choices), target_name=name)
        axes = np.ravel(drawn)
        for each in axes:  # some trials that failed to learn lie far off
            bottom, top = each.get_ylim()
            each.set_ylim(max(bottom, low - room), min(top, high + room))
        figure = axes[0].figure
        figure.set_size_inches(4 + 2.5 * len(axes), 4)
        save_figure(figure, found.folder / f"{picture}.png", tight=True)
        pyplot.close(figure)
