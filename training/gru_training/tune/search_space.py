"""The settings that a search varies."""

import dataclasses
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gru_training.command_settings import readings
from gru_training.config import from_dict, sections, to_dict
from gru_training.errors import ConfigError
from gru_training.search_ranges import Choice, Floats, Integers, OneOf


@dataclass(frozen=True)
class SearchSpace:
    """The settings that a search varies, by name, and the fixed ones."""

    config: Any
    """The settings to begin with, a dataclass of dataclasses."""
    choices: Mapping[str, Choice]

    @classmethod
    def of(cls, config: Any, fixed: Collection[str] = ()) -> "SearchSpace":
        """Return the space that a search of these settings covers by default.

        Args:
            config: Settings of a task.
            fixed: Names of settings to leave as they are.
        """
        choices = {}
        for name, section in _searchable(config).items():
            of = getattr(config, section)
            hint = typing.get_type_hints(type(of), include_extras=True)[name]
            marks = getattr(hint, "__metadata__", ())
            choice = next((mark for mark in marks if isinstance(mark, Choice)), None)
            if choice is not None and name not in fixed:
                choices[name] = choice.including(getattr(of, name))
        return cls(config, choices)

    def varying(self, text: str) -> "SearchSpace":
        """Return the space with another range for one setting.

        Args:
            text: `units=64:256`, `learning_rate=1e-4:1e-2:log`, `units=64:256:32` in steps, or
                `pooling=max,mean`.

        Raises:
            ConfigError: The range is malformed, or there is no such setting.
        """
        name, equals, written = text.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals or not written:
            raise ConfigError(f"--vary must be SETTING=RANGE, as units=64:256, got {text!r}")
        if name not in _searchable(self.config):
            raise ConfigError(f"--vary: there is no setting {name!r} to vary, got {text!r}")
        choice = self._range(name, written) if ":" in written else self._values(name, written)
        return dataclasses.replace(self, choices={**self.choices, name: choice})

    def defaults(self) -> dict[str, Any]:
        """Return the value of each varied setting before the search."""
        return {name: self._default(name) for name in self.choices}

    def allows(self, values: Mapping[str, Any]) -> bool:
        """Tell whether all of these values could be chosen."""
        return all(self.choices[name].holds(value) for name, value in values.items())

    def with_values(self, values: Mapping[str, Any]) -> Any:
        """Return the settings with these values.

        Raises:
            ConfigError: The values contradict each other.
        """
        nested, known = to_dict(self.config), _searchable(self.config)
        for name, value in values.items():
            nested[known[name]][name] = value
        return from_dict(type(self.config), nested)

    def _default(self, name: str) -> Any:
        return getattr(getattr(self.config, _searchable(self.config)[name]), name)

    def _range(self, name: str, written: str) -> Choice:
        low, high, *rest = written.split(":")
        try:
            if type(self._default(name)) is float:
                if rest not in ([], ["log"]):
                    raise ValueError(rest)
                found: Floats | Integers = Floats(float(low), float(high), bool(rest))
            else:
                step = int(rest[0]) if rest else 1
                if step < 1:
                    raise ValueError(rest)
                found = Integers(int(low), int(high), step)
        except ValueError:
            raise ConfigError(
                f"--vary {name} must be LOW:HIGH, LOW:HIGH:STEP of whole numbers, or "
                f"LOW:HIGH:log of others, got {written!r}"
            ) from None
        if not found.low < found.high:
            raise ConfigError(f"--vary {name} must begin below its end, got {written!r}")
        if isinstance(found, Floats) and found.log and found.low <= 0:
            raise ConfigError(
                f"--vary {name} must begin above 0 to be drawn by logarithm, got {written!r}"
            )
        for end in (found.low, found.high):
            self.with_values({name: end})
        return found

    def _values(self, name: str, written: str) -> OneOf:
        """Read values separated by commas, each in the first way that the setting accepts."""
        values = []
        for each in written.split(","):
            refusals = []
            for value in readings(each.strip()):
                try:
                    self.with_values({name: value})
                except ConfigError as error:
                    refusals.append(error)
                else:
                    values.append(value)
                    break
            else:
                raise ConfigError(f"--vary {name}: {refusals[0]}")
        return OneOf(tuple(values))


def _searchable(config: Any) -> dict[str, str]:
    """Return the section of each setting that a search may vary, by the setting's name."""
    return {name: section for name, section in sections(config).items() if section != "run"}
