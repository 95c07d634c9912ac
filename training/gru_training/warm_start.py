"""Training that begins with the weights of an earlier run: the part common to all tasks.

`metrics.json` of such a run has the value `warm_start`:

==============  ================================================================================
run             path of the run that gave the weights
digest          SHA-256 of the files that were taken from it, in hexadecimal
further values  depend on the task: new words and classes, or the last time that was learned from
==============  ================================================================================
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from gru_training.errors import ConfigError, TrainingError
from gru_training.runs.directory import TaskRun

RunT = TypeVar("RunT", bound=TaskRun)
ConfigT = TypeVar("ConfigT")


def open_start(run_type: type[RunT], task: str, path: Path) -> RunT:
    """Open the run of `--warm-start`.

    Args:
        run_type: Class of the task's runs.
        task: Name of the task that is trained.
        path: The run directory.

    Raises:
        TrainingError: There is no complete run, or it is of another task.
    """
    try:
        run = run_type.open(path)
        if run.task != task:
            raise ConfigError(
                f"expected a run of gru-train {task}, got {path}, one of {run.task}; name a run of "
                f"{task}, or leave --warm-start out"
            )
        run.config  # noqa: B018  refuses settings of another version
    except TrainingError as error:
        raise type(error)(f"--warm-start: {error}") from error
    return run


def with_settings_of(
    config: ConfigT, run: TaskRun, agreed: Mapping[str, Mapping[str, Any]]
) -> ConfigT:
    """Take over the settings that a run determines; conflicting ones are refused.

    Args:
        config: Settings of the training.
        run: The run that gives the weights.
        agreed: Values of the run by section of the settings and name.

    Raises:
        ConfigError: A setting is neither at its default nor that of the run.
    """
    sections = {}
    for section, values in agreed.items():
        part = getattr(config, section)
        defaults = {
            field.name: field.default for field in fields(part) if field.default is not MISSING
        }
        for name, value in values.items():
            given = getattr(part, name)
            if given != value and given != defaults[name]:
                flag = name.replace("_", "-")
                raise ConfigError(
                    f"--warm-start: {run.path} was trained with {_written(flag, value)}, got "
                    f"{_written(flag, given)}; leave it out to train with that of the run, or "
                    "leave --warm-start out to train from new weights"
                )
        sections[section] = replace(part, **values)
    return replace(config, **sections)  # type: ignore[type-var]


def start_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Describe in Markdown where the weights of a run began; no line without a warm start."""
    start = metrics.get("warm_start")
    if start is None:
        return []
    further = [
        f"{len(start[key]):,} {what}: {', '.join(start[key])}"
        for key, what in (("new_classes", "new"), ("dropped_classes", "dropped"))
        if start.get(key)
    ]
    if start.get("new_words"):
        further.insert(0, f"{start['new_words']:,} new words")
    said = f" ({'; '.join(further)})" if further else ""
    return [
        "",
        f"Training began with the weights of `{start['run']}`{said}; SHA-256 of what was taken: "
        f"`{start['digest'][:12]}...`.",
    ]


def _written(flag: str, value: Any) -> str:
    """Write a setting in the form of the command line."""
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    if value is None or value == ():
        return f"no --{flag}"
    shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
    return f"--{flag} {shown}"
