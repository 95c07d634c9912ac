# mypy: disable-error-code="type-arg"
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionOverrides(_message.Message):
    __slots__ = ("remote_op_remap_config", "batch_op_rewriter_config")
    REMOTE_OP_REMAP_CONFIG_FIELD_NUMBER: _ClassVar[int]
    BATCH_OP_REWRITER_CONFIG_FIELD_NUMBER: _ClassVar[int]
    remote_op_remap_config: bytes
    batch_op_rewriter_config: bytes
    def __init__(self, remote_op_remap_config: _Optional[bytes] = ..., batch_op_rewriter_config: _Optional[bytes] = ...) -> None: ...

class SavedModelConfig(_message.Message):
    __slots__ = ("session_overrides", "tfrt_runtime_config", "critical")
    SESSION_OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    TFRT_RUNTIME_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CRITICAL_FIELD_NUMBER: _ClassVar[int]
    session_overrides: SessionOverrides
    tfrt_runtime_config: bytes
    critical: bool
    def __init__(self, session_overrides: _Optional[_Union[SessionOverrides, _Mapping]] = ..., tfrt_runtime_config: _Optional[bytes] = ..., critical: _Optional[bool] = ...) -> None: ...
