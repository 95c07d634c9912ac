"""Generated from named_tensor.proto by serving.protos.regenerate: do not edit."""

from serving.protos import tensor_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n!serving/protos/named_tensor.proto\x12\ntensorflow\x1a\x1bserving/pro'
    b'tos/tensor.proto"W\n\x10NamedTensorProto\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x12/\n\x06'
    b'tensor\x18\x02 \x01(\x0b2\x17.tensorflow.TensorProtoR\x06tensorb\x06proto3'
)
