"""The command line of `gru-train`: finds the command, reads its settings and runs it.

Only the module of the command that is asked for is imported, and only its parser is built.
"""

import difflib
import functools
import importlib
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import tyro

from gru_training.errors import InterruptedRun, InterruptedWork, TrainingError
from gru_training.task import TASKS, Command, find_task, start_tensorflow, task_settings
from gru_training.termination import INTERRUPTED, remembered_interrupts

USAGE = "usage: gru-train COMMAND ..."

COMMANDS = {
    "tune": "gru_training.tune.command:TUNE",
    "check": "gru_training.check_command:CHECK",
    "resume": "gru_training.train_command:RESUME",
    "predict": "gru_training.predict.command:PREDICT",
    "compare": "gru_training.compare.command:COMPARE",
    "report": "gru_training.report_command:REPORT",
}
"""Where the commands are that belong to no task."""


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
        with remembered_interrupts(signal.SIGINT, signal.SIGTERM):
            return _run(command, config)
    except SystemExit as stop:  # tyro's --help and usage errors
        return int(stop.code or 0)
    except TrainingError as error:
        if "--debug" in arguments:
            raise
        print(f"gru-train: error: {error}", file=sys.stderr)
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
    """The command of this name; None where there is none.

    Args:
        name: First word of the command line.
        flags: Words after it; a training names them in the next step that it prints.
    """
    if name in TASKS:
        from gru_training.train_command import train

        run = functools.partial(train, name, flags=flags)
        return Command(name, find_task(name).config_type, run, needs_tensorflow=False)
    if name in COMMANDS:
        return _load(COMMANDS[name])
    return next((command for command in _task_commands() if command.name == name), None)


def parse(command: Command, flags: Sequence[str]) -> Any:
    """The settings of a command, as an instance of its class.

    Raises:
        SystemExit: The command does not have these settings, or help was asked for.
        ConfigError: A setting is out of range.
    """
    prog = f"gru-train {command.name}"
    if command.name in TASKS:
        return task_settings(find_task(command.name), flags, prog)
    options: dict[str, Any] = {
        "prog": prog,
        "args": list(flags),
        "config": (tyro.conf.OmitArgPrefixes,),
    }
    if not command.takes_training_flags:
        return tyro.cli(command.config_type, **options)
    config, others = tyro.cli(command.config_type, return_unknown_args=True, **options)
    return replace(config, training_flags=tuple(others))


def _load(place: str) -> Command:
    module, _, attribute = place.partition(":")
    command: Command = getattr(importlib.import_module(module), attribute)
    return command


def _task_commands() -> Iterator[Command]:
    for name in TASKS:
        yield from find_task(name).commands


def _run(command: Command, config: Any) -> int:
    from rich.console import Console

    console = Console(soft_wrap=True)
    work = config if command.check is None else command.check(config, console)
    if command.needs_tensorflow:
        start_tensorflow(console, config.debug)
    return command.run(work, console) or 0


def _help() -> str:
    types = {name: find_task(name).config_type for name in TASKS}
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


def _unknown(name: str) -> str:
    """The error of a command that does not exist."""
    names = [*TASKS, *COMMANDS, *(command.name for command in _task_commands())]
    near = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"expected a command ({', '.join(names)}), got {name!r}{meant}"
