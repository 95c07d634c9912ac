"""Everything that can differ between two runs, as frozen dataclasses, one per concern.

This file holds what the tasks share; each task has its classes in `<task>/config.py`. The
command line is generated from them (a field's docstring is its help text), and `to_dict`
and `from_dict` carry them through `config.json`. Values discovered from the data (a
vocabulary, a scale) belong to the run directory, not here.
"""

import dataclasses
import importlib.util
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Protocol, TypeVar, cast

import tyro

from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, OneOf

ConfigT = TypeVar("ConfigT")
OptionalFlag = Annotated[bool | None, tyro.conf.DisallowNone]
"""`--flag` or `--no-flag`; None, if neither is given, lets the data decide."""
OptionalText = Optional[str]  # noqa: UP045  tyro loads typeguard, slowly, to check a `str | None`
OptionalName = Annotated[OptionalText, tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class RunConfig:
    """The place of the results."""

    runs_dir: Path = Path("runs")
    """Folder of the run directories; created if missing."""
    name: OptionalName = None
    """Name of the new run directory; default: made from the data and the time."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""
    track: Annotated[Literal["tensorboard", "mlflow", "wandb"] | None, tyro.conf.DisallowNone] = (
        None
    )
    """Follow the training in TensorBoard, MLflow or Weights & Biases: settings, measures of each
    epoch, digest of the data, pictures; in the last two also the run itself."""
    track_to: Annotated[str | None, tyro.conf.arg(metavar="PLACE")] = None
    """Server or store of MLflow, such as http://host:5000 or sqlite:///runs.db; folder of the
    others. Default: what MLflow's environment says; tensorboard/ or wandb/ in --runs-dir."""
    track_project: OptionalName = None
    """Experiment of MLflow or project of Weights & Biases; default: keras-gru."""
    register: OptionalName = None
    """With --track mlflow, register the model under this name."""

    def __post_init__(self) -> None:
        if self.track is None and (self.track_to or self.track_project):
            raise ConfigError("--track-to and --track-project need --track")
        if self.register is not None and self.track != "mlflow":
            raise ConfigError(f"--register needs --track mlflow, got {self.track or 'no --track'}")
        if self.name is not None and (
            not self.name
            or "\0" in self.name
            or self.name.startswith(".")
            or Path(self.name).name != self.name
        ):
            raise ConfigError(
                f"--name must be a plain name without slashes or leading dot, got {self.name!r}"
            )

    def require_tracker(self) -> None:
        """Raise ConfigError where the package of the tracker is not installed.

        Called before data are read; the message names the extra that installs the package.
        """
        if self.track is not None and importlib.util.find_spec(self.track) is None:
            raise ConfigError(
                f"--track {self.track} needs {self.track}, which is not installed; install it with "
                f"pip install 'keras-gru[{self.track}]'"
            )


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of the optimisation: Adam, clipped gradients, early stopping."""

    epochs: int = 30
    """Maximum number of passes over the training part."""
    patience: int = 5
    """Stop after this many epochs without a better validation result."""
    batch_size: Annotated[int, OneOf((32, 64, 128))] = 64
    """Rows per step."""
    learning_rate: Annotated[float, Floats(3e-4, 1e-2, log=True)] = 1e-3
    """Adam's step size."""
    schedule: Literal["constant", "cosine", "decay"] = "constant"
    """Keep the learning rate constant; lower it to zero over --epochs along half a cosine; or
    multiply it by 0.8 after every epoch from the fourth."""
    clip_norm: float = 1.0
    """Maximum global norm of the gradients; larger gradients are scaled down."""
    seed: int = 0
    """Seed of the initial weights, dropout and shuffling."""

    def __post_init__(self) -> None:
        require_at_least("--epochs", self.epochs, 1)
        require_at_least("--patience", self.patience, 1)
        require_at_least("--batch-size", self.batch_size, 1)
        require_above_zero("--learning-rate", self.learning_rate)
        require_above_zero("--clip-norm", self.clip_norm)
        require_seed(self.seed)


class TaskConfig(Protocol):
    """The fields that every task's settings have; they are frozen dataclasses."""

    @property
    def preset(self) -> str | None:
        """The name of the preset on which the settings are based."""

    @property
    def training(self) -> TrainingConfig:
        """Settings of the optimisation: Adam, clipped gradients, early stopping."""

    @property
    def run(self) -> RunConfig:
        """Settings of the run directory and of trackers."""


def preset(name: str, presets: Mapping[str, ConfigT]) -> ConfigT:
    """Return the settings of this name, with the name in their field `preset`.

    Raises:
        ConfigError: There is no such preset.
    """
    if name not in presets:
        raise ConfigError(f"--preset must be one of {', '.join(presets)}, got {name!r}")
    return cast(ConfigT, dataclasses.replace(cast(Any, presets[name]), preset=name))


def sections(config: Any) -> dict[str, str]:
    """Return the section of each setting of a task by the setting's name."""
    return {
        field.name: section.name
        for section in dataclasses.fields(config)
        if dataclasses.is_dataclass(getattr(config, section.name))
        for field in dataclasses.fields(getattr(config, section.name))
    }


def toml_text(config: Any) -> str:
    """Write the settings of a task, except the place of the run, as TOML for `--config`.

    Settings that nobody gave are None, for which TOML has no value.
    """
    lines = []
    for section, values in to_dict(config).items():
        if isinstance(values, dict):
            lines += ["", f"[{section}]"]
            lines += [
                f"{name} = {json.dumps(value, ensure_ascii=False)}"
                for name, value in values.items()
                if value is not None and name not in ("name", "runs_dir")
            ]
    return "\n".join(lines[1:]) + "\n"


def to_dict(config: Any) -> dict[str, Any]:
    """Convert a config dataclass to nested dicts of JSON values."""
    return {f.name: _to_json(getattr(config, f.name)) for f in dataclasses.fields(config)}


def from_dict(cls: type[ConfigT], values: Mapping[str, Any], checked: bool = True) -> ConfigT:
    """Make a config dataclass from nested dicts; the inverse of `to_dict`.

    Args:
        cls: The dataclass.
        values: JSON values by field; absent fields take their defaults.
        checked: Whether values must be in range and fit each other. Without that, all fields must
            be there.

    Raises:
        ConfigError: An unknown field, or a value of the wrong type or out of range.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{cls.__name__} must be an object, got {values!r}")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise ConfigError(f"{cls.__name__} has no field {unknown[0]!r}; it has {sorted(hints)}")
    found = {name: _from_json(name, hints[name], value, checked) for name, value in values.items()}
    if checked:
        return cls(**found)
    config = object.__new__(cls)
    for name, value in found.items():
        object.__setattr__(config, name, value)
    return config


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _from_json(name: str, hint: Any, value: Any, checked: bool = True) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_dict(typing.cast(type, hint), value, checked)
    choices = typing.get_args(hint)
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if is_union and type(None) in choices:
        nested = next(
            (
                one
                for one in choices
                if typing.get_origin(one) is Literal or dataclasses.is_dataclass(one)
            ),
            None,
        )
        if nested is not None:
            return None if value is None else _from_json(name, nested, value)
    if typing.get_origin(hint) is Literal:
        if value in typing.get_args(hint):
            return value
        raise ConfigError(f"{name} must be one of {typing.get_args(hint)}, got {value!r}")
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{name} must be a list, got {value!r}")
        return tuple(_from_json(name, typing.get_args(hint)[0], item) for item in value)
    allowed = choices if is_union else (hint,)
    if value is None and type(None) in allowed:
        return None
    if Path in allowed and isinstance(value, str):
        return Path(value)
    if float in allowed and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(
                f"{name} must be a number below 1e308, got {value!r:.20}..."
            ) from None
    if type(value) in allowed:
        return value
    expected = " or ".join(kind.__name__ for kind in allowed)
    raise ConfigError(f"{name} must be {expected}, got {value!r}")


def require_at_least(flag: str, value: int, least: int) -> None:
    """Raise ConfigError if `value` is below `least`."""
    if value < least:
        raise ConfigError(f"{flag} must be at least {least}, got {value}")


def require_above_zero(flag: str, value: float) -> None:
    """Raise ConfigError if `value` is not a finite number above 0."""
    if not 0 < value < float("inf"):
        raise ConfigError(f"{flag} must be a finite number above 0, got {value}")


def require_rate(flag: str, value: float) -> None:
    """Raise ConfigError if `value` is not a dropout rate."""
    if not 0 <= value < 1:
        raise ConfigError(f"{flag} must be at least 0 and below 1, got {value}")


def require_seed(value: int, flag: str = "--seed") -> None:
    """Raise ConfigError if `value` is not a valid seed."""
    if not 0 <= value < 2**32:
        raise ConfigError(f"{flag} must be at least 0 and below 2^32, got {value}")


def require_split(validation_fraction: float, test_fraction: float) -> None:
    """Raise ConfigError if the shares leave one of the three parts empty."""
    for flag, fraction in (
        ("--validation-fraction", validation_fraction),
        ("--test-fraction", test_fraction),
    ):
        if not 0 < fraction < 1:
            raise ConfigError(f"{flag} must lie between 0 and 1, got {fraction}")
    if validation_fraction + test_fraction >= 1:
        raise ConfigError(
            "--validation-fraction and --test-fraction must leave something to train on, got "
            f"{validation_fraction} + {test_fraction}"
        )
