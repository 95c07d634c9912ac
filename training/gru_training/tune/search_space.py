"""The settings that a search varies."""

import dataclasses
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gru_training.command_settings import readings
from gru_training.config import from_dict, to_dict
from gru_training.errors import ConfigError
from gru_training.search_ranges import Choice, Floats, Integers, OneOf


@dataclass(frozen=True)
class SearchSpace:
    """The settings that a search varies, by name, and those that it leaves alone."""

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
        for section in _sections(config).values():
            hints = typing.get_type_hints(type(section), include_extras=True)
            for field in dataclasses.fields(section):
                marks = getattr(hints[field.name], "__metadata__", ())
                choice = next((mark for mark in marks if isinstance(mark, Choice)), None)
                if choice is not None and field.name not in fixed:
                    choices[field.name] = choice.including(getattr(section, field.name))
        return cls(config, choices)

    def varying(self, text: str) -> "SearchSpace":
        """The same space with another range for one setting.

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
        if name not in self._settings():
            raise ConfigError(f"--vary: there is no setting {name!r} to vary, got {text!r}")
        return dataclasses.replace(self, choices={**self.choices, name: self._read(name, written)})

    def defaults(self) -> dict[str, Any]:
        """The value of each setting that is varied, before the search."""
        settings = self._settings()
        return {name: settings[name] for name in self.choices}

    def allows(self, values: Mapping[str, Any]) -> bool:
        """Whether all of these values could be chosen."""
        return all(self.choices[name].holds(value) for name, value in values.items())

    def with_values(self, values: Mapping[str, Any]) -> Any:
        """Return the settings with these values.

        Raises:
            ConfigError: The values contradict each other.
        """
        nested = to_dict(self.config)
        for part, section in _sections(self.config).items():
            for field in dataclasses.fields(section):
                if field.name in values:
                    nested[part][field.name] = values[field.name]
        return from_dict(type(self.config), nested)

    def _settings(self) -> dict[str, Any]:
        return {
            field.name: getattr(section, field.name)
            for section in _sections(self.config).values()
            for field in dataclasses.fields(section)
        }

    def _read(self, name: str, written: str) -> Choice:
        if ":" not in written:
            values = tuple(self._value(name, each.strip()) for each in written.split(","))
            return OneOf(values)
        low, high, *rest = written.split(":")
        try:
            if type(self._settings()[name]) is float:
                if rest not in ([], ["log"]):
                    raise ValueError(rest)
                found: Floats | Integers = Floats(float(low), float(high), bool(rest))
            else:
                step = int(rest[0]) if rest else 1
                if step < 1:
                    raise ValueError(rest)
                found = Integers(int(low), int(high), step)
        except (ValueError, IndexError):
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

    def _value(self, name: str, written: str) -> Any:
        """One of several values; the first reading that the setting accepts."""
        refusal: ConfigError | None = None
        for value in readings(written):
            try:
                self.with_values({name: value})
            except ConfigError as error:
                refusal = refusal or error
            else:
                return value
        raise ConfigError(f"--vary {name}: {refusal}")


def _sections(config: Any) -> dict[str, Any]:
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if dataclasses.is_dataclass(getattr(config, field.name)) and field.name != "run"
    }
