"""Generated from status.proto by serving.protos.regenerate: do not edit."""

from serving.protos import error_codes_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1bserving/protos/status.proto\x12\x12tensorflow.serving\x1a serving/p'
    b'rotos/error_codes.proto"i\n\x0bStatusProto\x125\n\nerror_code\x18\x01 \x01(\x0e2\x16'
    b'.tensorflow.error.CodeR\terrorCode\x12#\n\rerror_message\x18\x02 \x01(\tR\x0cer'
    b'rorMessageb\x06proto3'
)
