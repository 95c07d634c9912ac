"""Settings by name: a command line begins with those of its `--preset` and changes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from gru_training.errors import ConfigError

ConfigT = TypeVar("ConfigT")
"""A config dataclass with a field `preset`."""


def preset(name: str, presets: Mapping[str, ConfigT]) -> ConfigT:
    """The settings of this name, which they also hold.

    Raises:
        ConfigError: There is none.
    """
    if name not in presets:
        raise ConfigError(f"--preset must be one of {', '.join(presets)}, got {name!r}")
    return cast(ConfigT, replace(cast(Any, presets[name]), preset=name))


def preset_in(
    arguments: Sequence[str], presets: Mapping[str, ConfigT], default: ConfigT
) -> ConfigT:
    """The settings that a command line begins with: its last `--preset`, else the default."""
    config = default
    for position, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag == "--preset" and (equals or position + 1 < len(arguments)):
            config = preset(value if equals else arguments[position + 1], presets)
    return config
