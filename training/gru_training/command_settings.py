"""Settings of a training from the words of a command line: flags, `--set` and `--config`.

A task's flags (`gru_training.task.Task.flags`) are for settings that many need. Every setting, with
a flag or without, can be given as `--set NAME=VALUE` and in a TOML file, `--config FILE`. Later
ones win: preset, file, `--set`, flags.
"""

import dataclasses
import difflib
import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec

from gru_training.config import from_dict, preset, require_at_least, sections, to_dict
from gru_training.errors import ConfigError

if TYPE_CHECKING:
    from tyro.constructors import StructTypeInfo

    from gru_training.task import Task

_FLAG = re.compile(r"--(?:no-)?([a-z][a-z0-9-]*)")
_CONFIG_HELP = "TOML file of settings, such as settings.toml of a run; --set and flags override it."
_SET_HELP = (
    "Any setting of the reference, also one without a flag, such as word_dropout=0.3; can be given "
    "several times."
)


WORKERS_HELP = (
    "Train with this many processes of this machine, each on its rows of every batch and, where "
    "there are GPUs, on its own."
)


class UnknownSettingError(ConfigError):
    """A task has no setting of this name."""


def task_settings(task: "Task", flags: Sequence[str], prog: str, shown: bool = True) -> Any:
    """Parse the settings of a task.

    Args:
        task: Task to be trained.
        flags: Words of the command line.
        prog: Name of the command in the usage.
        shown: Whether usage and errors are printed.

    Raises:
        SystemExit: The task does not have these settings, or help was asked for.
        ConfigError: A value is of the wrong type, out of range, or contradicts another; or a
            setting was given as a flag and has none.
        UnknownSettingError: `--set` or a file names a setting that the task does not have.
    """
    default = _given_in_words(task, flags)
    kept = None if task.flags is None else {"preset", *task.flags}
    if kept is not None:
        _require_flags(task, flags, kept)
    return tyro.cli(
        task.settings,
        prog=prog,
        description=inspect.getdoc(task.settings),
        default=default,
        args=list(flags),
        config=(tyro.conf.OmitArgPrefixes,),
        console_outputs=shown,
        registry=_Flags(task, kept),
    )


def given_settings(task: "Task", flags: Sequence[str]) -> set[str]:
    """Return the names of the settings that a command line gives, in whatever way."""
    by_section = sections(task.settings())
    names = {match[1].replace("-", "_") for match in _flags_among(flags)}
    names |= {text.partition("=")[0].rpartition(".")[2] for text in _values(flags, "--set")}
    default, found = task.settings(), _given_in_words(task, flags)
    return (names & set(by_section)) | {
        name
        for name, section in by_section.items()
        if _values(flags, "--config")
        and getattr(getattr(found, section), name) != getattr(getattr(default, section), name)
    }


def as_words(task: "Task", name: str, value: Any) -> list[str]:
    """Write a setting as words of a command line."""
    if task.flags is not None and name not in task.flags:
        return ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]


def without_lost_flags(message: str, task: "Task") -> str:
    """Name settings without a flag as `--set` takes them, in an error message."""
    names = set() if task.flags is None else set(sections(task.settings())) - set(task.flags)

    def named(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        if name not in names:
            return match[0]
        return f"--set {name}=no" if match[0].startswith("--no-") else f"--set {name}"

    return _FLAG.sub(named, message)


def readings(text: str) -> Iterator[Any]:
    """Yield the values that a text may stand for, the most specific first."""
    words = {"true": True, "yes": True, "false": False, "no": False, "none": None}
    if text.lower() in words:
        yield words[text.lower()]
    for kind in (int, float):
        try:
            yield kind(text)
        except ValueError:
            continue
    yield text
    yield [each for each in text.split(",") if each]


def _given_in_words(task: "Task", flags: Sequence[str]) -> Any:
    """Read the settings of preset, file and `--set`, which are checked with the flags."""
    config = task.settings()
    names = _values(flags, "--preset")
    files = [(path, _read_file(Path(path))) for path in _values(flags, "--config")]
    names = names or [str(values["preset"]) for _, values in files if "preset" in values]
    if names:
        config = preset(names[-1], task.presets)
    for path, values in files:
        nested = {name: value for name, value in values.items() if name != "preset"}
        config = _with_values(config, nested, f"--config {path}")
    for text in _values(flags, "--set"):
        config = _assigned(config, text)
    return config


def without_workers(flags: Sequence[str]) -> tuple[list[str], int]:
    """Take `--workers` out of the words of a command line.

    Returns:
        The other words, and the number of workers, which is 1 by default.

    Raises:
        ConfigError: There are fewer than one.
    """
    given = _values(flags, "--workers")
    if not given:
        return list(flags), 1
    kept, words = list[str](), iter(flags)
    for word in words:
        if word == "--workers":
            next(words)
        elif not word.startswith("--workers="):
            kept.append(word)
    count = int(given[-1])
    require_at_least("--workers", count, 1)
    return kept, count


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"--config: there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"--config {path}: expected a TOML file; {error}") from error


def _with_values(config: Any, nested: Mapping[str, Any], source: str) -> Any:
    """Replace settings, given by section and name."""
    values = to_dict(config)
    known = sections(config)
    for section, of in nested.items():
        if section not in set(known.values()) or not isinstance(of, Mapping):
            expected = ", ".join(f"[{name}]" for name in dict.fromkeys(known.values()))
            raise UnknownSettingError(f"{source}: expected the tables {expected}, got {section!r}")
        for name, value in of.items():
            if known.get(name) != section:
                place = f"; it stands in [{known[name]}]" if name in known else _close(name, known)
                raise UnknownSettingError(f"{source}: [{section}] has no setting {name!r}{place}")
            values[section][name] = value
    try:
        return from_dict(type(config), values, checked=False)  # flags may change what does not fit
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def _assigned(config: Any, text: str) -> Any:
    """Replace the setting of a `--set`, by the first reading of its value that is accepted."""
    name, equals, value = text.partition("=")
    section, _, name = name.strip().replace("-", "_").rpartition(".")
    known = sections(config)
    if not equals:
        raise ConfigError(f"--set must be NAME=VALUE, as word_dropout=0.3, got {text!r}")
    if name not in known or section not in ("", known[name]):
        raise UnknownSettingError(f"--set: there is no setting {text.partition('=')[0]!r}"
                          f"{_close(name, known)}")  # fmt: skip
    refusal: ConfigError | None = None
    for reading in readings(value.strip()):
        try:
            return _with_values(config, {known[name]: {name: reading}}, "--set")
        except ConfigError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _close(name: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _values(flags: Sequence[str], wanted: str) -> list[str]:
    """Collect the values of a flag."""
    found = []
    for position, word in enumerate(flags):
        flag, equals, value = word.partition("=")
        if flag == wanted and (equals or position + 1 < len(flags)):
            found.append(value if equals else flags[position + 1])
    return found


def _flags_among(words: Sequence[str]) -> Iterator[re.Match[str]]:
    for word in words:
        if match := _FLAG.fullmatch(word.partition("=")[0].replace("_", "-")):
            yield match


def _require_flags(task: "Task", flags: Sequence[str], kept: set[str]) -> None:
    """Raise ConfigError for a setting that was given as a flag and has none."""
    known = sections(task.settings())
    for match in _flags_among(flags):
        name = match[1].replace("-", "_")
        if name in known and name not in kept:
            value = "false" if match[0].startswith("--no-") else "VALUE"
            raise ConfigError(
                f"the setting {name} has no flag; give it as --set {name}={value}, or in "
                f"[{known[name]}] of a file with --config FILE"
            )


class HelpTexts(ConstructorRegistry):
    """A help formatter that shows each option's help as one text, with any default."""

    def __init__(self) -> None:
        super().__init__()
        self._inside = False
        self.struct_rule(self._found)

    def _found(self, info: "StructTypeInfo") -> StructConstructorSpec | None:
        if self._inside or not dataclasses.is_dataclass(info.type):
            return None
        self._inside = True
        try:
            found = ConstructorRegistry.get_struct_spec(info)
        finally:
            self._inside = False
        return self._changed(info, found) if isinstance(found, StructConstructorSpec) else None

    def _changed(
        self,
        info: "StructTypeInfo",  # noqa: ARG002
        found: StructConstructorSpec,
    ) -> StructConstructorSpec:
        """Change what the help shows of a dataclass."""
        return dataclasses.replace(found, fields=tuple(map(self._field, found.fields)))

    def _field(self, field: StructFieldSpec) -> StructFieldSpec:
        kind = field.type
        if field.default is None or field.default == ():
            kind = Annotated[kind, tyro.conf.arg(help_behavior_hint="")]  # type: ignore[assignment]
        text = functools.partial(self._help, field.helptext)
        return dataclasses.replace(field, type=kind, helptext=text)

    def _help(self, text: str | Callable[[], str | None] | None) -> str | None:
        shown = text() if callable(text) else text
        return None if shown is None else " ".join(shown.split())


class _Flags(HelpTexts):
    """Tells tyro which settings have flags.

    Args:
        task: Task that has the settings.
        kept: Names of those with a flag; None: all.
    """

    def __init__(self, task: "Task", kept: set[str] | None):
        super().__init__()
        self._task, self._kept = task, kept

    def _changed(
        self, info: "StructTypeInfo", found: StructConstructorSpec
    ) -> StructConstructorSpec:
        default, fields = info.default, found.fields
        if info.type is self._task.settings:
            asked = (
                StructFieldSpec(
                    "config",
                    Annotated[Path | None, tyro.conf.arg(metavar="FILE")],  # type: ignore[arg-type]
                    None,
                    _CONFIG_HELP,
                ),
                StructFieldSpec(
                    "set",
                    Annotated[  # type: ignore[arg-type]
                        tuple[str, ...],
                        tyro.conf.UseAppendAction,
                        tyro.conf.arg(metavar="NAME=VALUE"),
                    ],
                    (),
                    _SET_HELP,
                ),
                StructFieldSpec(
                    "workers",
                    Annotated[int | None, tyro.conf.DisallowNone],  # type: ignore[arg-type]
                    None,
                    WORKERS_HELP,
                ),
            )
            fields = (*map(self._field, (*fields[:1], *asked)), *fields[1:])
        elif self._kept is not None:
            fields = tuple(self._field(field) for field in fields if field.name in self._kept)

        def settings(**values: Any) -> Any:
            own = {
                name: value
                for name, value in values.items()
                if name not in ("config", "set", "workers")
            }
            return dataclasses.replace(default, **own)

        return StructConstructorSpec(settings, fields)

    def _help(self, text: str | Callable[[], str | None] | None) -> str | None:
        """Replace flags in a setting's help by `--set` for settings without a flag."""
        shown = super()._help(text)
        return None if shown is None else without_lost_flags(shown, self._task)
