"""Whether the package of a tracker is installed; needs neither it nor TensorFlow."""

import importlib.util

from gru_training.config import RunConfig
from gru_training.errors import ConfigError


def require_package(config: RunConfig) -> None:
    """Find out before data are read that a tracker's package is missing.

    Raises:
        ConfigError: It is; names the extra that installs it.
    """
    name = config.track
    if name is None or importlib.util.find_spec(name) is not None:
        return
    raise ConfigError(
        f"--track {name} needs {name}, which is not installed; install it with "
        f"pip install 'keras-gru[{name}]'"
    )
