"""The report of a search: what was tried, what did best, and which settings mattered."""

import csv
import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot, rc_context
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState
from optuna.visualization.matplotlib import plot_optimization_history, plot_slice

from gru_training.criterion import ERRORS_TO_BEAT_BY_FEW
from gru_training.errors import RunDirectoryError
from gru_training.plots.picture import save_figure
from gru_training.runs.directory import TaskRun, write_whole
from gru_training.runs.report_page import write_report_page
from gru_training.search_ranges import written
from gru_training.task import Comparable, Task
from gru_training.tune.search_space import SearchSpace
from gru_training.tune.study import Pick, Study

_MIN_TRIALS = 8
_SHOWN_TRIALS = 20


@dataclass(frozen=True)
class FinalRun:
    """A training with the settings that were taken, and what it reached on the test rows."""

    path: Path
    seed: int
    measure: str = ""
    """Name of the measure on test rows; empty where the task compares no runs."""
    test: float = math.nan
    style: str = ".4f"

    @classmethod
    def of(cls, task: Task, run: TaskRun, seed: int) -> "FinalRun":
        """Record a run of this seed."""
        if not isinstance(task, Comparable):
            return cls(run.path, seed)
        measure = task.outcomes(run, None, run).model.measures[0]
        return cls(run.path, seed, measure.name, measure.value, measure.style)


def summary(study: Study, picked: Pick, finals: Sequence[FinalRun]) -> list[str]:
    """Summarise a search in a few lines."""
    trials = study.trials()
    counts = {
        state: sum(each.state == state for each in trials)
        for state in ("complete", "stopped", "failed")
    }
    lines = [
        f"{len(trials)} trials: {counts['complete']} complete, {counts['stopped']} stopped early, "
        f"{counts['failed']} failed."
    ]
    name, style = study.criterion.name, study.criterion.style
    best, before = picked.best, picked.defaults
    line = f"Best {name} on the validation rows: {best.value:{style}} (trial {best.number})"
    if before is not None and before.number != best.number:
        line += f", against {before.value:{style}} with the defaults"
        if picked.error is not None:
            line += f": better by {picked.gain:{style}}, standard error {picked.error:{style}}"
    lines.append(f"{line}.")
    if study.criterion.caution:
        lines.append(f"Caution: {study.criterion.caution}.")
    if picked.keeps_defaults and picked.error is None:
        lines.append("The defaults are kept: there is too little to choose by.")
    elif picked.keeps_defaults:
        gain = "a gain of less than a standard error"
        if study.criterion.caution:
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


def write_report(
    space: SearchSpace,
    study: Study,
    picked: Pick,
    folder: Path,
    finals: Sequence[FinalRun],
    again: str,
) -> Path:
    """Write report.md, report.html, trials.csv and the pictures.

    Args:
        space: Space of the search.
        study: Complete study of the search.
        picked: Trial whose settings were taken.
        folder: Folder of the study.
        finals: Runs with these settings.
        again: Command that trains with the settings of the best trial.

    Returns:
        The page.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    importances = _importances(study)
    try:
        _draw(space, study, folder)
        write_whole(folder / "trials.csv", _table(space, study))
        page = _markdown(space, study, picked, finals, importances, again)
        write_whole(folder / "report.md", page)
    except OSError as error:
        raise RunDirectoryError(f"cannot write the report of {folder}: {error}") from error
    return write_report_page(folder) or folder / "report.md"


def _markdown(
    space: SearchSpace,
    study: Study,
    picked: Pick,
    finals: Sequence[FinalRun],
    importances: dict[str, float],
    again: str,
) -> str:
    best, defaults = picked.best, space.defaults()
    name, style = study.criterion.name, study.criterion.style
    lines = ["# Search for settings", "", *(f"{line}\n" for line in summary(study, picked, finals))]
    lines += ["## Best settings", "", "| setting | best | default | searched | importance |"]
    lines += ["|---|---:|---:|---|---:|"]
    for setting, choice in space.choices.items():
        share = f"{importances[setting]:.0%}" if setting in importances else "–"
        lines.append(
            f"| {setting} | {written(best.settings.get(setting))} | {written(defaults[setting])} | "
            f"{choice} | {share} |"
        )
    lines += ["", "Importance: the share of the differences between trials that the setting "
              "explains (PED-ANOVA, Watanabe et al., 2023)."] if importances else []  # fmt: skip
    if again:
        them = "those of the best trial all the same" if picked.keeps_defaults else "them again"
        lines += ["", f"To train with {them}:", "", f"```\n{again}\n```"]
    if finals and finals[0].measure:
        lines += ["", "## Final training", "", f"| run | seed | test {finals[0].measure} |"]
        lines += ["|---|---:|---:|"]
        lines += [f"| {each.path.name} | {each.seed} | {each.test:{each.style}} |"
                  for each in finals]  # fmt: skip
    lines += ["", "## The search", "", "![trials over time](history.png)", ""]
    lines += ["![the criterion over each setting](settings.png)", "", "## Trials", ""]
    lines += [f"| trial | {name} | seconds | {' | '.join(space.choices)} |"]
    lines += ["|---:|---:|---:|" + "---:|" * len(space.choices)]
    sign = -1 if study.criterion.higher_is_better else 1
    done = [each for each in study.trials() if each.value is not None and each.state == "complete"]
    done.sort(key=lambda each: sign * (each.value or 0.0))
    for each in done[:_SHOWN_TRIALS]:
        values = " | ".join(written(each.settings.get(setting)) for setting in space.choices)
        seconds = "–" if each.seconds is None else f"{each.seconds:.0f}"
        lines.append(f"| {each.number} | {each.value:{style}} | {seconds} | {values} |")
    more = len(study.trials()) - len(done[:_SHOWN_TRIALS])
    lines += ["", f"These are the best; the other {more} are in trials.csv."] if more else []
    lines += ["", "The validation rows chose among the trials: what the best one reaches there is "
              "better than what it reaches on new rows. Test rows were not read by the "
              "search."]  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(space: SearchSpace, study: Study) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", study.criterion.name, "seconds", *space.choices, "reason"])
    for each in study.trials():
        settings = [each.settings.get(name, "") for name in space.choices]
        writer.writerow([each.number, each.state, each.value, each.seconds, *settings, each.reason])
    return text.getvalue()


def _draw(space: SearchSpace, study: Study, folder: Path) -> None:
    """Draw the trials over time and over each setting."""
    name = study.criterion.name
    pictures: dict[str, Callable[[], Any]] = {
        "history": lambda: plot_optimization_history(study.study, target_name=name),
        "settings": lambda: plot_slice(study.study, list(space.choices), target_name=name),
    }
    for picture, plot in pictures.items():
        with rc_context(), warnings.catch_warnings():  # it sets a style for the whole process
            warnings.simplefilter("ignore")  # it is experimental; settings may have one value alone
            drawn: Any = plot()
        axes = np.ravel(drawn)
        figure = axes[0].figure
        for each in axes:
            _zoom(each, study)
        figure.set_size_inches(4 + 2.5 * len(axes), 4)
        save_figure(figure, folder / f"{picture}.png", tight=True)
        pyplot.close(figure)


def _zoom(axes: Any, study: Study) -> None:
    """Show most of the trials well: some that failed to learn lie far off."""
    values = [each.value for each in study.trials() if each.state == "complete"]
    low, high = np.nanquantile(np.array(values, float), [0.1, 0.9])
    room = 2 * (high - low) or 1e-6
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - room), min(top, high + room))


def _importances(study: Study) -> dict[str, float]:
    """The share of each setting; none where too few trials say something."""
    done = study.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(done) < _MIN_TRIALS or len({each.value for each in done}) < 3:
        return {}
    return get_param_importances(study.study, evaluator=PedAnovaImportanceEvaluator())
