"""Settings by keyword for a task's dataclasses, named as on the command line without dashes."""

import dataclasses
import difflib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from gru_training.config import from_dict, preset, sections, to_dict
from gru_training.errors import ConfigError, TrainingError

ClassT = TypeVar("ClassT", bound=type)

_PYTHON_DEFAULTS: Mapping[str, Any] = {"runs_dir": None}
"""Defaults that differ from the command line's: an estimator keeps no run unless told where."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a task by keyword.

    Args:
        config_type: The dataclass of its settings, one dataclass for each section.
        presets: Presets by name.
        elsewhere: Advice for names that are no settings here, by name.
    """

    config_type: type
    presets: Mapping[str, Any]
    elsewhere: Mapping[str, str]

    def sections(self) -> dict[str, str]:
        """Return the section of each setting by the setting's name."""
        known = sections(self.config_type())
        return {name: part for name, part in known.items() if name not in self.elsewhere}

    def values(self, config: Any) -> dict[str, Any]:
        """Return the settings of a config by name."""
        flat = {
            name: getattr(getattr(config, part), name) for name, part in self.sections().items()
        }
        return {"preset": config.preset, **flat}

    def with_defaults(self, given: Mapping[str, Any], owner: str) -> dict[str, Any]:
        """Complete settings by those of the preset or the defaults.

        Raises:
            ConfigError: There is no such setting or preset; names what is close.
        """
        self.require_known(given, owner)
        chosen = given.get("preset")
        begun = self.config_type() if chosen is None else self._preset(chosen)
        return {**self.values(begun), **_PYTHON_DEFAULTS, **given}

    def require_known(self, names: Mapping[str, Any] | Sequence[str], owner: str) -> None:
        """Raise ConfigError where one of the names is no setting."""
        known = ["preset", *self.sections()]
        for name in names:
            if name in self.elsewhere:
                raise ConfigError(f"{owner} has no setting {name!r}: {self.elsewhere[name]}")
            if name not in known:
                close = difflib.get_close_matches(name, known, n=3)
                hint = f"did you mean {' or '.join(map(repr, close))}?" if close else (
                    f"it has {', '.join(known)}")  # fmt: skip
                raise ConfigError(f"{owner} has no setting {name!r}; {hint}")

    def config(self, values: Mapping[str, Any], **further: Mapping[str, Any]) -> Any:
        """Make the config with these settings.

        Args:
            values: Settings by name, from `with_defaults`.
            **further: Values of settings that are no keywords, by section.

        Raises:
            ConfigError: A value is of the wrong type, out of range, or contradicts another.
        """
        chosen = values["preset"]
        begun = self.config_type() if chosen is None else self._preset(chosen)
        nested = to_dict(begun)
        for section, more in further.items():
            nested[section].update({name: _plain(value) for name, value in more.items()})
        for name, section in self.sections().items():
            left = name in _PYTHON_DEFAULTS and values[name] is None
            if name not in further.get(section, {}) and not left:
                nested[section][name] = _plain(values[name])
        with in_python():
            return from_dict(self.config_type, nested)

    def _preset(self, name: Any) -> Any:
        with in_python():
            return preset(name, self.presets)

    def signature(self, **defaults: Any) -> inspect.Signature:
        """Make the signature of a constructor that takes every setting by keyword.

        Args:
            **defaults: Defaults that differ from those of the settings.
        """
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
            for name, value in {
                **self.values(self.config_type()),
                **_PYTHON_DEFAULTS,
                **defaults,
            }.items()
        ]
        return inspect.Signature(parameters)


def takes(settings: Settings, **defaults: Any) -> Callable[[ClassT], ClassT]:
    """Make a decorator that shows a class' settings in its constructor's signature.

    scikit-learn reads the settings from the signature.

    Args:
        settings: Settings of the class.
        **defaults: Defaults of the class that differ from those of the settings.
    """

    def decorate(cls: ClassT) -> ClassT:
        cls.__init__.__signature__ = settings.signature(**defaults)  # type: ignore[misc]
        return cls

    return decorate


_FLAG = re.compile(r"--(?:no-)?[a-z][a-z-]*")
_ARGUMENTS = {"--text-column": "text=", "--label-column": "label="}


@contextmanager
def in_python() -> Iterator[None]:
    """Replace flags by keywords in the errors raised inside the context."""
    try:
        yield
    except TrainingError as error:
        error.args = (with_keywords(str(error)),)
        raise


def with_keywords(text: str) -> str:
    """Replace flags by keywords in a text."""
    return _FLAG.sub(lambda match: _argument(match[0]), text)


def _argument(flag: str) -> str:
    if flag in _ARGUMENTS:
        return _ARGUMENTS[flag]
    if flag.startswith("--no-"):
        return flag.removeprefix("--no-").replace("-", "_") + "=False"
    return flag.removeprefix("--").replace("-", "_")


def _plain(value: Any) -> Any:
    """Convert a value to JSON's types; class weights become a text, as on the command line."""
    if isinstance(value, Mapping):
        return json.dumps({str(key).strip(): _plain(weight) for key, weight in value.items()})
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic):
        return value.item()
    return value
