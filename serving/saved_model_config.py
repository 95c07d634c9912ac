"""`assets.extra/saved_model_config.pb`: settings of the session that a version carries itself."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

from google.protobuf.message import DecodeError

from serving.errors import Internal
from serving.protos.saved_model_config_pb2 import SavedModelConfig
from serving.session import SessionOptions

FILE = Path("assets.extra", "saved_model_config.pb")

_REWRITER = "batch_op_rewrite"
_PARAMETER = "batch_op_rewrite_config"


def with_overrides(options: SessionOptions, directory: Path) -> SessionOptions:
    """The session options for a version: the server's, and over them the version's own.

    Raises:
        Internal: With TF Serving's text: the file does not parse.
    """
    path = directory / FILE
    if not path.exists():
        return options
    try:
        overrides = SavedModelConfig.FromString(path.read_bytes()).session_overrides
    except DecodeError:
        raise Internal(f"Unable to parse SavedModelConfig: {path}") from None
    if not overrides.HasField("batch_op_rewriter_config"):
        return options
    proto = options.config_proto()
    rewriter = proto.graph_options.rewrite_options.custom_optimizers.add(name=_REWRITER)
    rewriter.parameter_map[_PARAMETER].s = base64.b64encode(overrides.batch_op_rewriter_config)
    return replace(options, config=proto.SerializeToString())
