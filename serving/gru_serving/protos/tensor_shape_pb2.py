"""Generated from tensor_shape.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n%gru_serving/protos/tensor_shape.proto\x12\ntensorflow"\x98\x01\n\x10Tens'
    b'orShapeProto\x122\n\x03dim\x18\x02 \x03(\x0b2 .tensorflow.TensorShapeProto.DimR'
    b'\x03dim\x12!\n\x0cunknown_rank\x18\x03 \x01(\x08R\x0bunknownRank\x1a-\n\x03Dim\x12\x12\n\x04size\x18\x01 \x01(\x03'
    b'R\x04size\x12\x12\n\x04name\x18\x02 \x01(\tR\x04nameb\x06proto3'
)
