"""`gru-train tune` and the search of the estimators; Optuna is imported when a search begins."""

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gru_training.command_settings import as_words, given_settings, task_settings
from gru_training.config import OptionalName, require_above_zero, require_at_least
from gru_training.errors import ConfigError, InterruptedWork, RunDirectoryError, TrainingError
from gru_training.search_ranges import written
from gru_training.task import (
    TASKS,
    Command,
    Searchable,
    Task,
    find_task,
    read_data,
    start_tensorflow,
)
from gru_training.tune.search_space import SearchSpace

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.tune.report import FinalRun
    from gru_training.tune.study import Found


@dataclass(frozen=True)
class TuneConfig:
    """Search for the settings that do best on the validation rows, then train with them.

    Any setting of the training may follow TASK; the search leaves it as it is. The first trial has
    the default settings, which are kept unless the best ones are better by a standard error. The
    test rows are read by the final training only.

    The study is kept in a folder. The same command continues it, also after Ctrl-C or a
    crash. Several machines that share the folder can run it at the same time.
    """

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """sentiment, forecasting or language."""
    minutes: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Time for the search; trials that are running at its end are stopped. Default: 30 without
    --trials, else no limit. The final training comes on top."""
    trials: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Maximum number of trials; default: as many as fit into the time."""
    parallel: int = 1
    """Trials to run at the same time, each in a process of its own."""
    vary: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SETTING=RANGE")] = ()
    """Search this range of a setting, such as units=64:256, learning_rate=1e-4:1e-2:log or
    pooling=max,mean; in addition to the settings that are searched by default."""
    only: bool = False
    """Search only the settings of --vary."""
    seeds: int = 1
    """Final trainings with the settings found, each with a seed of its own; 0: none."""
    study: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of the study, new or to be continued; default: in --runs-dir, named after the data."""
    name: OptionalName = None
    """Name of the final run; default: that of the study with -best."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""
    training_flags: Annotated[tuple[str, ...], tyro.conf.Suppress, tyro.conf.Fixed] = ()
    """Settings of the training, which the search does not vary."""

    def __post_init__(self) -> None:
        if self.minutes is not None:
            require_above_zero("--minutes", self.minutes)
        if self.trials is not None:
            require_at_least("--trials", self.trials, 1)
        require_at_least("--parallel", self.parallel, 1)
        require_at_least("--seeds", self.seeds, 0)
        if self.only and not self.vary:
            raise ConfigError("--only needs the settings to search, as --vary units=64:256")

    @property
    def seconds(self) -> float | None:
        """Seconds for the search; None without a limit."""
        if self.minutes is None:
            return None if self.trials is not None else 30 * 60.0
        return 60 * self.minutes


def run_tune(config: TuneConfig, console: "Console") -> None:
    """Search, train with the best settings, and write the report of the study.

    Args:
        config: Settings of the search, and flags of the training.
        console: Console of the command.

    Raises:
        TrainingError: A setting, the data or the study cannot be used.
    """
    if config.task not in TASKS:
        raise ConfigError(f"expected one of the tasks {', '.join(TASKS)}, got {config.task!r}")
    task, flags = find_task(config.task), config.training_flags
    settings = task_settings(task, flags, "gru-train tune TASK")
    settings = replace(settings, run=replace(settings.run, debug=config.debug))
    given = given_settings(task, flags)
    search_space(config, settings, given)  # refuses what cannot be searched before data are read
    data = read_data(task, settings, console)
    source = getattr(settings.data, "data", None)
    name = "built-in" if source is None else Path(source).resolve().name.split(".")[0]
    folder = config.study or settings.run.runs_dir / f"tune-{config.task}-{name}"
    found = tune(config, settings, given, data, folder, console)
    finals = _final_runs(config, task, found, data, console)
    best = found.best.params.items()
    own = [word for each in best for word in as_words(task, *each)]
    conclude(found, console, finals, join(["gru-train", config.task, *flags, *own]))


TUNE = Command(
    "tune",
    TuneConfig,
    run_tune,
    needs_tensorflow=False,
    takes_training_flags=True,
    examples=(
        "gru-train tune sentiment --data tickets.csv --minutes 30",
        "gru-train tune sentiment --data tickets.csv --units 128 --vary dropout=0.2:0.6",
        "gru-train tune forecasting --data load.csv --target load --trials 40 --parallel 2",
    ),
)


def conclude(
    found: "Found",
    console: "Console",
    finals: "Sequence[FinalRun]" = (),
    again: str = "",
) -> None:
    """Write the report of a study and print its summary.

    Args:
        found: Result of the search.
        console: Console of the command.
        finals: Runs with its settings.
        again: Command that trains with the settings of the best trial.
    """
    from gru_training.tune.report import summary, write_report

    report = write_report(found, finals, again)
    lines = ["", *summary(found, finals), f"study   {found.folder}", f"report  {report}"]
    lines += [f"run     {each.path}" for each in finals]
    if again and (found.keeps_defaults or not finals):
        lines.append(f"next    {again}")
    for line in lines:
        console.print(line)


def search_space(config: TuneConfig, settings: Any, fixed: Collection[str]) -> SearchSpace:
    """Choose the settings that a search varies, and their ranges.

    Args:
        config: Settings of the search.
        settings: Settings of the training to begin with.
        fixed: Names of settings to leave as they are.

    Raises:
        ConfigError: A range cannot be used, or nothing is left to search.
    """
    start = getattr(settings.training, "warm_start", None)
    if start is not None:
        raise ConfigError(
            f"--warm-start must be left out of a search, whose trials vary the network, got "
            f"{start}; search without it"
        )
    space = SearchSpace.of(settings, fixed)
    if config.only:
        space = replace(space, choices={})
    for text in config.vary:
        space = space.varying(text)
    if not space.choices:
        raise ConfigError("expected something to search, got a value for every setting")
    return space


def tune(
    config: TuneConfig,
    settings: Any,
    fixed: Collection[str],
    data: Any,
    folder: Path,
    console: "Console",
) -> "Found":
    """Carry out a search, or continue the one of its folder.

    Args:
        config: Settings of the search.
        settings: Settings of the training to begin with.
        fixed: Names of settings to leave as they are.
        data: Data from `Task.read`.
        folder: Folder of the study.
        console: Console that shows progress.

    Returns:
        Settings to train with, and the reason.

    Raises:
        TrainingError: Settings, data or study cannot be used, or no trial is complete.
        InterruptedWork: The user interrupted the search, which the same command continues.
    """
    space = search_space(config, settings, fixed)
    from gru_training.tune.search import Search
    from gru_training.tune.study import choose, claim, complete_trials, open_study

    task, new = find_task(config.task), not folder.exists()
    if not isinstance(task, Searchable):
        raise ConfigError(f"there is nothing to search for in the task {config.task}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"cannot make the folder of the study: {error}") from error
    criterion = task.criterion(settings, data)
    study = open_study(folder, criterion, settings.training.seed)
    defaults = space.defaults()
    identity = _identity(config.task, space, data, criterion.name)
    going_on = claim(folder, study, identity, defaults if space.allows(defaults) else None)
    width = max(map(len, space.choices))
    begins = "going on with" if going_on else "new"
    lines = [f"{begins} study {folder}: {criterion.name} on the validation rows, of"]
    lines += [
        f"  {name:{width}}  {choice} (default {written(defaults[name])})"
        for name, choice in space.choices.items()
    ]
    lines += [f"note: {criterion.caution}"] if criterion.caution else []
    for line in lines:
        console.print(line)
    try:
        search = Search(study, space, (config.task, data, criterion), console)
        search.run(config.seconds, config.trials, config.parallel)
    except KeyboardInterrupt:
        raise InterruptedWork(
            f"interrupted; the study is kept in {folder}, and the same command continues it"
        ) from None
    except TrainingError:
        if new and not complete_trials(study):  # these settings would keep others from the folder
            shutil.rmtree(folder, ignore_errors=True)
        raise
    found = choose(folder, space, study, criterion)
    if found is None:
        raise TrainingError(
            f"{folder}: expected at least one complete trial, got none; give more --minutes"
        )
    return found


def _final_runs(
    config: TuneConfig, task: Task, found: "Found", data: Any, console: "Console"
) -> "list[FinalRun]":
    """Train with the resulting settings, once for each seed."""
    from gru_training.tune.report import FinalRun

    settings = found.space.with_values(found.trial.params)
    if not config.seeds:
        return []
    start_tensorflow(console, config.debug)
    name = config.name or settings.run.name or f"{found.folder.name}-best"
    finals = []
    for number in range(config.seeds):
        seed = settings.training.seed + number
        of_seed = name if config.seeds == 1 else f"{name}-seed{seed}"
        console.print(f"\nfinal training {number + 1} of {config.seeds}, seed {seed}")
        chosen = replace(
            reseeded(settings, seed),
            run=replace(settings.run, name=_free(settings.run.runs_dir, of_seed)),
        )
        run = task.train(chosen, console, False, data)
        if run is None:
            continue
        if (verdict := task.show_results(run, console)) is not None:
            console.print(f"\n{verdict.problem}")
        finals.append(FinalRun.of(task, run, seed))
        if run.metrics["interrupted"]:
            break
    return finals


def reseeded(settings: Any, seed: int) -> Any:
    """Return the settings with another seed, and the same rows in each part of the data."""
    data = settings.data
    if hasattr(data, "drawn_with"):
        data = replace(data, split_seed=data.drawn_with(settings.training.seed))
    return replace(settings, data=data, training=replace(settings.training, seed=seed))


def _free(folder: Path, name: str) -> str:
    """Add a number to the name if such a run exists or was interrupted."""
    from gru_training.loop.checkpoint import checkpoint_path
    from gru_training.runs.directory import free_name

    return free_name(folder, name, lambda run: run.exists() or checkpoint_path(run).exists())


def _identity(task: str, space: SearchSpace, data: Any, measure: str) -> dict[str, Any]:
    """Describe what makes trials comparable: task, data, measure, and fixed settings."""
    from gru_training.compare.command import flags
    from gru_training.data.digest import data_digest

    searched = {f"--{name.replace('_', '-')}" for name in space.choices}
    return {
        "task": task,
        "data": data_digest(data.contents()),
        "measure": measure,
        "choices": {name: str(choice) for name, choice in space.choices.items()},
        **{flag: value for flag, value in flags(space.config).items() if flag not in searched},
    }
