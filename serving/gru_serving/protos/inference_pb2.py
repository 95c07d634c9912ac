"""Generated from inference.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import classification_pb2
from gru_serving.protos import input_pb2
from gru_serving.protos import model_pb2
from gru_serving.protos import regression_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n"gru_serving/protos/inference.proto\x12\x12tensorflow.serving\x1a\'gr'
    b'u_serving/protos/classification.proto\x1a\x1egru_serving/protos/in'
    b'put.proto\x1a\x1egru_serving/protos/model.proto\x1a#gru_serving/proto'
    b's/regression.proto"n\n\rInferenceTask\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.te'
    b'nsorflow.serving.ModelSpecR\tmodelSpec\x12\x1f\n\x0bmethod_name\x18\x02 \x01(\tR\n'
    b'methodName"\x8f\x02\n\x0fInferenceResult\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorf'
    b'low.serving.ModelSpecR\tmodelSpec\x12_\n\x15classification_result\x18\x02 '
    b'\x01(\x0b2(.tensorflow.serving.ClassificationResultH\x00R\x14classificat'
    b'ionResult\x12S\n\x11regression_result\x18\x03 \x01(\x0b2$.tensorflow.serving.Re'
    b'gressionResultH\x00R\x10regressionResultB\x08\n\x06result"\x81\x01\n\x15MultiInfere'
    b'nceRequest\x127\n\x05tasks\x18\x01 \x03(\x0b2!.tensorflow.serving.InferenceTask'
    b'R\x05tasks\x12/\n\x05input\x18\x02 \x01(\x0b2\x19.tensorflow.serving.InputR\x05input"W\n\x16'
    b'MultiInferenceResponse\x12=\n\x07results\x18\x01 \x03(\x0b2#.tensorflow.serving'
    b'.InferenceResultR\x07resultsb\x06proto3'
)
