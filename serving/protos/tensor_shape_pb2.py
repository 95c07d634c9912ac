"""Generated from tensor_shape.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n!serving/protos/tensor_shape.proto\x12\ntensorflow"\x98\x01\n\x10TensorSh'
    b'apeProto\x122\n\x03dim\x18\x02 \x03(\x0b2 .tensorflow.TensorShapeProto.DimR\x03dim'
    b'\x12!\n\x0cunknown_rank\x18\x03 \x01(\x08R\x0bunknownRank\x1a-\n\x03Dim\x12\x12\n\x04size\x18\x01 \x01(\x03R\x04si'
    b'ze\x12\x12\n\x04name\x18\x02 \x01(\tR\x04nameb\x06proto3'
)
