"""`assets.extra/saved_model_config.pb`: settings that a version carries itself.

They are meant for parts that TensorFlow's Python packages do not contain: the rewriters of remote
and batch operations, and the TFRT runtime. The file is checked as TF Serving checks it, and
settings without effect are logged.
"""

from __future__ import annotations

import logging
from pathlib import Path

from google.protobuf.message import DecodeError

from gru_serving.errors import Internal
from gru_serving.protos.saved_model_config_pb2 import SavedModelConfig

log = logging.getLogger(__name__)

FILE = Path("assets.extra", "saved_model_config.pb")


def check_saved_model_config(directory: Path) -> None:
    """Read the settings of a version, if it has any.

    Raises:
        Internal: With TF Serving's text: the file does not parse.
    """
    path = directory / FILE
    if not path.exists():
        return
    try:
        config = SavedModelConfig.FromString(path.read_bytes())
    except DecodeError:
        raise Internal(f"Unable to parse SavedModelConfig: {path}") from None
    asked = [field.name for field, _ in config.session_overrides.ListFields()]
    asked += [field.name for field, _ in config.ListFields() if field.name != "session_overrides"]
    if asked:
        log.warning("%s: no effect in this server: %s", path, ", ".join(asked))
