"""Generated from status.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import error_codes_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n\x1fgru_serving/protos/status.proto\x12\x12tensorflow.serving\x1a$gru_s'
    b'erving/protos/error_codes.proto"i\n\x0bStatusProto\x125\n\nerror_code'
    b'\x18\x01 \x01(\x0e2\x16.tensorflow.error.CodeR\terrorCode\x12#\n\rerror_message\x18\x02'
    b' \x01(\tR\x0cerrorMessageb\x06proto3'
)
