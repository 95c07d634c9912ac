"""`gru-train check DATA`: what is wrong with data, before anything is trained."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gru_training.config import OptionalName
from gru_training.errors import ConfigError, DataError, ForeignDataError
from gru_training.task import TASKS, Command, Task, find_task, task_settings

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.data.check import DataCheck

WOULD_FAIL = 2


@dataclass(frozen=True)
class CheckConfig:
    """Check data before training: list everything that is wrong, and a summary.

    Any setting of the training may follow DATA and is checked with it:

    gru-train check tickets.csv --text-column body --label-column category

    gru-train check sales.csv --target revenue --horizon 28

    gru-train check tickets.csv --drop-bad --merge-labels

    Exit status: 0 where training would begin, 2 where it would fail.
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    """A file or folder, as --data of a training."""
    task: OptionalName = None
    """What to train on it: sentiment, forecasting or language; default: what its columns suit."""
    debug: bool = False
    """Show where an error arose."""
    training_flags: Annotated[tuple[str, ...], tyro.conf.Suppress, tyro.conf.Fixed] = ()
    """Flags of the training."""


def run_check(config: CheckConfig, console: "Console") -> int:
    """Check data and print what was found.

    Args:
        config: The file, the flags of the training and, optionally, the task.
        console: Where to print.

    Returns:
        The exit status.

    Raises:
        DataError: No task can read the data.
        ConfigError: No such task, or a setting out of range.
    """
    if config.task is not None and config.task not in TASKS:
        raise ConfigError(f"--task must be one of {', '.join(TASKS)}, got {config.task!r}")
    settings = config.training_flags
    _require_no_data_flag(config, settings)
    flags = ["--data", str(config.path), *settings]
    name, found = _check(flags, list(TASKS) if config.task is None else [config.task])
    found.print(console)
    if found.errors:
        console.print("\ntraining would fail", style="bold red")
        if found.remedies:
            further = dict.fromkeys(found.remedies)
            line = join(["gru-train", "check", str(config.path), *settings, *further])
            console.print(f"to leave such rows out  {line}", markup=False, highlight=False)
        return WOULD_FAIL
    line = join(["gru-train", name, "--data", str(config.path), *settings])
    console.print(f"\nnext    {line}", markup=False, highlight=False)
    return 0


CHECK = Command("check", CheckConfig, run_check, needs_tensorflow=False, takes_training_flags=True)


def _require_no_data_flag(config: CheckConfig, settings: Sequence[str]) -> None:
    """Raise ConfigError where the file follows --data, as in a training."""
    given = [number for number, flag in enumerate(settings) if flag.split("=")[0] == "--data"]
    if not given:
        return
    flag, *after = settings[given[0] :]
    path = flag.partition("=")[2] or next(iter(after), "DATA")
    task = f" --task {config.path}" if str(config.path) in TASKS else ""
    raise ConfigError(
        f"--data must be left out, as the first argument names the data: "
        f"gru-train check {quote(path)}{task}"
    )


def _check(flags: Sequence[str], names: Collection[str]) -> tuple[str, "DataCheck"]:
    """The first task that has these settings and finds its columns in the file."""
    foreign: dict[str, ForeignDataError] = {}
    for name in names:
        task = find_task(name)
        settings = _settings(flags, task, quiet=len(names) > 1)
        if settings is None:
            continue
        try:
            found = task.check(settings)
        except ForeignDataError as error:
            foreign[name] = error
            continue
        if found is not None:
            return name, found
    if len(set(map(str, foreign.values()))) == 1:
        raise next(iter(foreign.values()))
    if foreign:
        reasons = "".join(f"\n  {name}: {error}" for name, error in foreign.items())
        raise DataError(f"{flags[1]}: no task can be trained on it{reasons}")
    raise ConfigError(
        f"no training takes these settings: {join(flags[2:])}; `gru-train {next(iter(names))} "
        "--help` shows what there is"
    )


def _settings(flags: Sequence[str], task: Task, quiet: bool) -> Any:
    """The settings of a task; None if it does not have them."""
    try:
        return task_settings(task, flags, "gru-train check DATA", shown=not quiet)
    except SystemExit:
        if not quiet:
            raise
        return None
