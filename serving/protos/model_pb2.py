"""Generated from model.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1aserving/protos/model.proto\x12\x12tensorflow.serving\x1a\x1egoogle/pro'
    b'tobuf/wrappers.proto"\xb8\x01\n\tModelSpec\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x127\n\x07ve'
    b'rsion\x18\x02 \x01(\x0b2\x1b.google.protobuf.Int64ValueH\x00R\x07version\x12%\n\rversi'
    b'on_label\x18\x04 \x01(\tH\x00R\x0cversionLabel\x12%\n\x0esignature_name\x18\x03 \x01(\tR\rsign'
    b'atureNameB\x10\n\x0eversion_choiceb\x06proto3'
)
