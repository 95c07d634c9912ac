"""Generated from model.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n\x1egru_serving/protos/model.proto\x12\x12tensorflow.serving\x1a\x1egoogle'
    b'/protobuf/wrappers.proto"\xb8\x01\n\tModelSpec\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x127'
    b'\n\x07version\x18\x02 \x01(\x0b2\x1b.google.protobuf.Int64ValueH\x00R\x07version\x12%\n\rv'
    b'ersion_label\x18\x04 \x01(\tH\x00R\x0cversionLabel\x12%\n\x0esignature_name\x18\x03 \x01(\tR\r'
    b'signatureNameB\x10\n\x0eversion_choiceb\x06proto3'
)
