"""The settings of a run, or of a checkpoint, and the version that wrote them."""

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from gru_training.config import from_dict
from gru_training.errors import ConfigError, RunDirectoryError


def package_version() -> str:
    """That of keras_gru, found without loading TensorFlow."""
    try:
        return metadata.version("keras-gru")
    except metadata.PackageNotFoundError:  # a checkout that was never installed
        import keras_gru

        return keras_gru.__version__


def read_config(values: Any, config_types: Mapping[str, type], source: Path) -> Any:
    """The settings that a run or a checkpoint was written with.

    Args:
        values: JSON values; of gru_training.config.to_dict, with the task and the version.
        config_types: The dataclass of each task that will do.
        source: Where the values come from, for messages.

    Raises:
        RunDirectoryError: They are of another task or major version, or not as expected.
    """
    values = dict(values) if isinstance(values, dict) else {}
    task = values.pop("task", None)
    values.pop("given", None)
    if task not in config_types:
        raise RunDirectoryError(
            f"{source}: expected a {' or '.join(config_types)} run, got task {task!r}"
        )
    version = package_version()
    made_by = str(values.pop("keras_gru", version))
    if made_by.partition(".")[0] != version.partition(".")[0]:
        raise RunDirectoryError(
            f"{source}: expected a run of the major version of keras_gru "
            f"{version}, got one of {made_by}; train again with this version, "
            "or use it with the version that wrote it"
        )
    try:
        return from_dict(config_types[task], values)
    except ConfigError as error:
        raise RunDirectoryError(f"{source}: {error}") from error
