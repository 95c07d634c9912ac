"""The command line of `gru-train`: finds the command, reads its settings and runs it.

The trainings of tasks, `resume`, `check` and `report` are here; the other commands are imported
when they are asked for.
"""

import difflib
import functools
import importlib
import re
import signal
import sys
import webbrowser
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from gru_training.command_settings import (
    WORKERS_HELP,
    HelpTexts,
    UnknownSettingError,
    task_settings,
    without_lost_flags,
    without_workers,
)
from gru_training.config import OptionalName
from gru_training.data.problems import without_source
from gru_training.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    ForeignDataError,
    InterruptedRun,
    InterruptedWork,
    RunDirectoryError,
    TrainingError,
)
from gru_training.task import (
    TASKS,
    Command,
    Task,
    Verdict,
    find_task,
    interrupted_training,
    read_data,
    start_tensorflow,
)
from gru_training.termination import INTERRUPTED, remembered_interrupts

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.data.check import DataCheck

USAGE = "usage: gru-train COMMAND ..."
CHECK_FAILURE_STATUS = 2


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; see `gru_training.__main__`."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else 2
    name, *flags = arguments
    try:
        command = find_command(name, flags)
        if command is None:
            print(f"gru-train: {_unknown(name)}", file=sys.stderr)
            return 2
        config = parse(command, flags)
        words, workers = without_workers(flags)
        if workers > 1 and (name in TASKS or isinstance(config, ResumeConfig)):
            return _launch(config, [name, *words], workers)
        with remembered_interrupts(signal.SIGINT, signal.SIGTERM):
            return _run(command, config)
    except SystemExit as stop:  # tyro's --help and usage errors
        return int(stop.code or 0)
    except TrainingError as error:
        if "--debug" in arguments:
            raise
        print(f"gru-train: error: {_for_people(str(error), arguments)}", file=sys.stderr)
        return error.exit_code
    except InterruptedRun as stop:
        print(
            "gru-train: interrupted; no run was written. To continue it: gru-train resume "
            f"{quote(str(stop.run))}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except InterruptedWork as stop:
        print(f"gru-train: {stop.message}", file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("gru-train: interrupted; no run was written, and no checkpoint", file=sys.stderr)
        return INTERRUPTED


def find_command(name: str, flags: Sequence[str]) -> Command | None:
    """Find the command of this name; None where there is none.

    Args:
        name: First word of the command line.
        flags: Words after it; a training repeats them in the next step that it prints.
    """
    if name in TASKS:
        task, run = find_task(name), functools.partial(train, name, flags=flags)
        return Command(name, task.settings, run, needs_tensorflow=False, examples=task.examples)
    if name in COMMANDS:
        return _load(COMMANDS[name])
    return next((command for command in _task_commands() if command.name == name), None)


def parse(command: Command, flags: Sequence[str]) -> Any:
    """Parse the settings of a command, as an instance of its class.

    Raises:
        SystemExit: The command does not have these settings, or help was asked for.
        ConfigError: A setting is out of range.
    """
    prog = f"gru-train {command.name}"
    options: dict[str, Any] = {
        "prog": prog,
        "args": list(flags),
        "config": (tyro.conf.OmitArgPrefixes,),
        "registry": HelpTexts(),
    }
    try:
        if command.name in TASKS:
            return task_settings(find_task(command.name), flags, prog)
        if not command.takes_training_flags:
            return tyro.cli(command.config_type, **options)
        config, others = tyro.cli(command.config_type, return_unknown_args=True, **options)
        return replace(config, training_flags=tuple(others))
    except SystemExit as stop:
        if not stop.code and command.examples:  # help was asked for, and ends with examples
            print("\n".join(["", "examples:", *(f"  {line}" for line in command.examples)]))
        raise


def _launch(config: Any, command: Sequence[str], workers: int) -> int:
    """Run a training as several processes of this machine; returns the exit status."""
    from gru_training.loop.cluster import launch

    if isinstance(config, ResumeConfig):
        return launch(command, workers, config.run_path.parent, config.run_path)
    named = config.run.name is not None
    folder = config.run.runs_dir
    return launch(command, workers, folder, folder / config.run.name if named else None)


def _load(place: str | Command) -> Command:
    if isinstance(place, Command):
        return place
    module, _, attribute = place.partition(":")
    command: Command = getattr(importlib.import_module(module), attribute)
    return command


def _task_commands() -> Iterator[Command]:
    for name in TASKS:
        yield from find_task(name).commands


def _run(command: Command, config: Any) -> int:
    from rich.console import Console

    console = Console(soft_wrap=True, markup=False, highlight=False)
    work = config if command.check is None else command.check(config, console)
    if command.needs_tensorflow:
        start_tensorflow(console, config.debug)
    return command.run(work, console) or 0


def _help() -> str:
    types = {name: find_task(name).settings for name in TASKS}
    types |= {name: _load(place).config_type for name, place in COMMANDS.items()}
    types |= {command.name: command.config_type for command in _task_commands()}
    width = max(map(len, types))
    rows = [
        f"  {name:<{width}}  {(kind.__doc__ or '').partition(chr(10))[0]}"
        for name, kind in types.items()
    ]
    return "\n".join([
        USAGE, "", "Train a GRU on your data or on built-in data, and look at what it does.", "",
        "commands:", *rows, "", "gru-train COMMAND --help explains each command.",
    ])  # fmt: skip


def _for_people(message: str, arguments: Sequence[str]) -> str:
    """Replace flags in an error message by `--set` for settings without a flag."""
    for name in TASKS:
        if name in arguments:
            return without_lost_flags(message, find_task(name))
    return message


def _unknown(name: str) -> str:
    """Make the error for a command that does not exist."""
    names = [*TASKS, *COMMANDS, *(command.name for command in _task_commands())]
    near = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"expected a command ({', '.join(names)}), got {name!r}{meant}"


@dataclass(frozen=True)
class ResumeConfig:
    """Continue a training that was killed, with its original settings.

    It continues from its last checkpoint, at most half a minute of training before it was killed,
    and ends with the same weights as without the interruption. Data that have changed since are
    refused. It may continue with another number of workers.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Directory chosen for the run, such as runs/NAME."""
    workers: Annotated[int, tyro.conf.arg(help=WORKERS_HELP)] = 1
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""


def train(
    name: str,
    config: Any,
    console: "Console",
    flags: Sequence[str] | None = None,
    resume: bool = False,
) -> int:
    """Check the data, train, and print the results and the next steps.

    Args:
        name: Name of the task.
        config: Settings of the training.
        console: Console of the command.
        flags: Flags from which the settings were read; None where a run gave them.
        resume: Whether to continue from a checkpoint.

    Returns:
        The exit status.
    """
    task = find_task(name)
    config.run.require_tracker()
    data = read_data(task, config, console)
    start_tensorflow(console, config.run.debug)
    run = task.train(config, console, resume, data)
    if run is None:
        console.print("done; the first worker writes the run")
        return 0
    _show_next_steps(console, name, run, task.show_results(run, console), flags)
    return INTERRUPTED if run.metrics["interrupted"] else 0


def _resume(config: ResumeConfig, console: "Console") -> int:
    found = interrupted_training(config.run_path)
    if found.given is not None:
        raise CheckpointError(
            f"{config.run_path} was started in Python, with data in memory; continue it there with "
            f"the estimator's resume({str(config.run_path)!r}, data)"
        )
    settings = replace(found.config, run=replace(found.config.run, debug=config.debug))
    return train(found.task, settings, console, resume=True)


def _show_next_steps(
    console: "Console",
    name: str,
    run: Any,
    verdict: Verdict | None,
    flags: Sequence[str] | None,
) -> None:
    """Print the path of the run and the commands that can follow."""
    lines = [""]
    if run.metrics["interrupted"]:
        lines += [f"interrupted; epoch {run.metrics['best_epoch']}, the best so far, is kept", ""]
    export = join(["gru-serve", "export", str(run.path), "--to", f"models/{_served(run, name)}"])
    steps = [f"next    {export}"]
    if verdict is not None:
        lines += [verdict.problem, ""]
        steps = [f"next    {export}  # though {verdict.problem.partition(':')[0]}"]
        if verdict.flags:
            again = join(_again(name, flags, verdict.flags))
            steps = [f"next    {again}", f"or      {export}  # anyway"]
    lines += [f"run     {run.path}", f"report  {run.path / 'report.html'}", *steps]
    for line in lines:
        console.print(line)


def _served(run: Any, task: str) -> str:
    """Choose the run's name on a server: the user's, or that of the data or the task."""
    data = getattr(getattr(run.config, "data", None), "data", None)
    name = run.config.run.name
    if name is None:
        name = task if data is None else Path(data).resolve().name.split(".")[0]
    return re.sub(r"[^\w-]+", "-", name).strip("-") or task


def _again(name: str, flags: Sequence[str] | None, further: Sequence[str]) -> list[str]:
    """Write the command of a training with further settings and without its --name."""
    if flags is None:
        return ["gru-train", name, "...", *further]
    kept: list[str] = []
    for flag in flags:
        if kept and kept[-1] == "--name":
            del kept[-1]
        elif not flag.startswith("--name="):
            kept.append(flag)
    return ["gru-train", name, *kept, *further]


@dataclass(frozen=True)
class CheckConfig:
    """Check data before training: summarise them and list every problem.

    Any setting of the training may follow DATA and is checked with it. The exit status is 0 where
    training would begin and 2 where it would fail.
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
        config: File, flags of the training and, optionally, the task.
        console: Console of the command.

    Returns:
        The exit status.

    Raises:
        DataError: No task can read the data.
        ConfigError: No such task or file, or a setting out of range.
    """
    if config.task is not None and config.task not in TASKS:
        raise ConfigError(f"--task must be one of {', '.join(TASKS)}, got {config.task!r}")
    settings = config.training_flags
    _require_no_data_flag(config, settings)
    if not config.path.exists():
        raise ConfigError(f"there is no file or folder {config.path}")
    flags = ["--data", str(config.path), *settings]
    name, settings, found, seen = _check(
        flags, list(TASKS) if config.task is None else [config.task]
    )
    console.print(seen)
    found.print(console)
    if found.errors:
        console.print("\ntraining would fail", style="bold red")
        if found.remedies:
            further = dict.fromkeys(found.remedies)
            line = join(["gru-train", "check", str(config.path), *settings, *further])
            console.print(f"to leave such rows out  {line}")
        return CHECK_FAILURE_STATUS
    line = join(["gru-train", name, "--data", str(config.path), *settings])
    console.print(f"\nnext    {line}")
    return 0


def _require_no_data_flag(config: CheckConfig, settings: Sequence[str]) -> None:
    """Raise ConfigError if the file is given by --data after the command, as in a training."""
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


class _Checked(NamedTuple):
    """Data that a task has read."""

    task: str
    settings: tuple[str, ...]
    """Flags of the training, including those that follow from the columns."""
    data: "DataCheck"
    seen: str
    """Description of how the data were understood, and why."""


def _check(flags: Sequence[str], names: Collection[str]) -> _Checked:
    """Find the task that has these settings and finds its columns in the file.

    The first such task is used; if an earlier one lacks only a column, the first task without
    errors.
    """
    foreign: dict[str, ForeignDataError] = {}
    faulty: _Checked | None = None
    for name in names:
        task, guessed = find_task(name), len(names) > 1
        reason, given = "", list(flags)
        try:
            settings = task_settings(task, flags, "gru-train check DATA", shown=not guessed)
            while True:
                try:
                    found = task.read(settings)
                    break
                except ForeignDataError as error:
                    if not error.flags or {*error.flags} <= {*given}:
                        raise
                    reason += f" and {error.reason}" if reason else f", as {error.reason}"
                    given += error.flags
                    settings = task_settings(task, given, "gru-train check DATA")
        except ForeignDataError as error:
            foreign[name] = error
            continue
        except (SystemExit, UnknownSettingError):  # the task has no such settings
            if guessed:
                continue
            raise
        if found is None:
            continue
        seen = _seen(task, found, reason, foreign, guessed)
        checked = _Checked(name, tuple(given[2:]), found, seen)
        if not found.errors or not any(error.near for error in foreign.values()):
            return checked
        faulty = faulty or checked
    if faulty is not None:
        return faulty
    if len(set(map(str, foreign.values()))) == 1:
        raise next(iter(foreign.values()))
    if foreign:
        reasons = "".join(f"\n  {name}: {error}" for name, error in foreign.items())
        raise DataError(f"{flags[1]}: no task can be trained on it{reasons}")
    raise ConfigError(
        f"no training takes these settings: {join(flags[2:])}; `gru-train {next(iter(names))} "
        "--help` shows what there is"
    )


def _seen(
    task: Task,
    found: "DataCheck",
    reason: str,
    foreign: Mapping[str, ForeignDataError],
    guessed: bool,
) -> str:
    """Describe how the data were understood, and which tasks they did not fit."""
    columns = f" ({found.reading})" if found.reading else ""
    text = f"read as {task.data_kind}{columns}{reason}"
    for name, error in foreign.items():
        why = without_source(str(error).partition("; ")[0], found.source).partition("\n")[0]
        text += f"; not as {find_task(name).data_kind}: {why}"
    return f"{text}; --task says otherwise" if guessed else text


@dataclass(frozen=True)
class ReportConfig:
    """Print the path of a run's report page, and open it in the browser with --open.

    The page is a single file that needs no other file, server or network. It is written if an older
    run has none. Folders of gru-train compare have such a page, too.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run, such as runs/NAME, or the folder of a comparison."""
    open: bool = False
    """Open the page in the browser."""
    rewrite: bool = False
    """Write the page again, in the form of this version."""
    debug: bool = False
    """Show the traceback of an error."""


def run_report(config: ReportConfig, console: "Console") -> None:
    """Print the path of the page, and open it.

    Raises:
        RunDirectoryError: The folder holds no report, or the page cannot be written.
    """
    from gru_training.runs.report_page import PAGES, write_report_page

    folder = config.run_path
    if not folder.is_dir():
        raise RunDirectoryError(f"there is no run directory {folder}")
    page = next((folder / name for name in PAGES.values() if (folder / name).is_file()), None)
    if page is None or config.rewrite:
        page = write_report_page(folder)
    if page is None:
        raise RunDirectoryError(f"{folder}: expected {' or '.join(PAGES)}, got a folder without")
    console.print(f"page    {page}")
    if config.open and not webbrowser.open(page.resolve().as_uri()):
        console.print("no browser could be opened; open the page yourself")


COMMANDS: dict[str, str | Command] = {
    "tune": "gru_training.tune.command:TUNE",
    "check": Command(
        "check",
        CheckConfig,
        run_check,
        needs_tensorflow=False,
        takes_training_flags=True,
        examples=(
            "gru-train check tickets.csv",
            "gru-train check tickets.csv --text-column text --label-column label --drop-bad",
            "gru-train check load.csv --target load --horizon 24",
        ),
    ),
    "resume": Command(
        "resume",
        ResumeConfig,
        _resume,
        needs_tensorflow=False,
        examples=("gru-train resume runs/tickets",),
    ),
    "predict": "gru_training.predict:PREDICT",
    "compare": "gru_training.compare.command:COMPARE",
    "report": Command(
        "report",
        ReportConfig,
        run_report,
        needs_tensorflow=False,
        examples=("gru-train report runs/tickets", "gru-train report runs/tickets --open"),
    ),
}
"""Commands that belong to no task, or the modules that define them."""
