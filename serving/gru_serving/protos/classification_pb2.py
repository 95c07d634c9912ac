"""Generated from classification.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import input_pb2
from gru_serving.protos import model_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b"\n'gru_serving/protos/classification.proto\x12\x12tensorflow.servin"
    b'g\x1a\x1egru_serving/protos/input.proto\x1a\x1egru_serving/protos/model.'
    b'proto"3\n\x05Class\x12\x14\n\x05label\x18\x01 \x01(\tR\x05label\x12\x14\n\x05score\x18\x02 \x01(\x02R\x05score"F'
    b'\n\x0fClassifications\x123\n\x07classes\x18\x01 \x03(\x0b2\x19.tensorflow.serving.Clas'
    b'sR\x07classes"e\n\x14ClassificationResult\x12M\n\x0fclassifications\x18\x01 \x03(\x0b2'
    b'#.tensorflow.serving.ClassificationsR\x0fclassifications"\x86\x01\n\x15Cl'
    b'assificationRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving'
    b'.ModelSpecR\tmodelSpec\x12/\n\x05input\x18\x02 \x01(\x0b2\x19.tensorflow.serving.In'
    b'putR\x05input"\x98\x01\n\x16ClassificationResponse\x12<\n\nmodel_spec\x18\x02 \x01(\x0b2\x1d.'
    b'tensorflow.serving.ModelSpecR\tmodelSpec\x12@\n\x06result\x18\x01 \x01(\x0b2(.te'
    b'nsorflow.serving.ClassificationResultR\x06resultb\x06proto3'
)
