"""Generated from named_tensor.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import tensor_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n%gru_serving/protos/named_tensor.proto\x12\ntensorflow\x1a\x1fgru_ser'
    b'ving/protos/tensor.proto"W\n\x10NamedTensorProto\x12\x12\n\x04name\x18\x01 \x01(\tR\x04'
    b'name\x12/\n\x06tensor\x18\x02 \x01(\x0b2\x17.tensorflow.TensorProtoR\x06tensorb\x06proto'
    b'3'
)
