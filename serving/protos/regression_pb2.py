"""Generated from regression.proto by serving.protos.regenerate: do not edit."""

from serving.protos import input_pb2
from serving.protos import model_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1fserving/protos/regression.proto\x12\x12tensorflow.serving\x1a\x1aservi'
    b'ng/protos/input.proto\x1a\x1aserving/protos/model.proto""\n\nRegress'
    b'ion\x12\x14\n\x05value\x18\x01 \x01(\x02R\x05value"T\n\x10RegressionResult\x12@\n\x0bregressions'
    b'\x18\x01 \x03(\x0b2\x1e.tensorflow.serving.RegressionR\x0bregressions"\x82\x01\n\x11Regr'
    b'essionRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving.Model'
    b'SpecR\tmodelSpec\x12/\n\x05input\x18\x02 \x01(\x0b2\x19.tensorflow.serving.InputR\x05i'
    b'nput"\x90\x01\n\x12RegressionResponse\x12<\n\nmodel_spec\x18\x02 \x01(\x0b2\x1d.tensorflow'
    b'.serving.ModelSpecR\tmodelSpec\x12<\n\x06result\x18\x01 \x01(\x0b2$.tensorflow.s'
    b'erving.RegressionResultR\x06resultb\x06proto3'
)
