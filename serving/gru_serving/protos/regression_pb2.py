"""Generated from regression.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import input_pb2
from gru_serving.protos import model_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n#gru_serving/protos/regression.proto\x12\x12tensorflow.serving\x1a\x1eg'
    b'ru_serving/protos/input.proto\x1a\x1egru_serving/protos/model.prot'
    b'o""\n\nRegression\x12\x14\n\x05value\x18\x01 \x01(\x02R\x05value"T\n\x10RegressionResult\x12@\n'
    b'\x0bregressions\x18\x01 \x03(\x0b2\x1e.tensorflow.serving.RegressionR\x0bregressi'
    b'ons"\x82\x01\n\x11RegressionRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.s'
    b'erving.ModelSpecR\tmodelSpec\x12/\n\x05input\x18\x02 \x01(\x0b2\x19.tensorflow.serv'
    b'ing.InputR\x05input"\x90\x01\n\x12RegressionResponse\x12<\n\nmodel_spec\x18\x02 \x01(\x0b2'
    b'\x1d.tensorflow.serving.ModelSpecR\tmodelSpec\x12<\n\x06result\x18\x01 \x01(\x0b2$.'
    b'tensorflow.serving.RegressionResultR\x06resultb\x06proto3'
)
