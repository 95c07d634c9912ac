# mypy: disable-error-code="type-arg"
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ShadowConfig(_message.Message):
    __slots__ = ("version", "label", "share", "tolerance")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    version: int
    label: str
    share: float
    tolerance: float
    def __init__(self, version: _Optional[int] = ..., label: _Optional[str] = ..., share: _Optional[float] = ..., tolerance: _Optional[float] = ...) -> None: ...
