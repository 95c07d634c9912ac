"""Generated from classification.proto by serving.protos.regenerate: do not edit."""

from serving.protos import input_pb2
from serving.protos import model_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n#serving/protos/classification.proto\x12\x12tensorflow.serving\x1a\x1as'
    b'erving/protos/input.proto\x1a\x1aserving/protos/model.proto"3\n\x05Cla'
    b'ss\x12\x14\n\x05label\x18\x01 \x01(\tR\x05label\x12\x14\n\x05score\x18\x02 \x01(\x02R\x05score"F\n\x0fClassifica'
    b'tions\x123\n\x07classes\x18\x01 \x03(\x0b2\x19.tensorflow.serving.ClassR\x07classes"e'
    b'\n\x14ClassificationResult\x12M\n\x0fclassifications\x18\x01 \x03(\x0b2#.tensorflow'
    b'.serving.ClassificationsR\x0fclassifications"\x86\x01\n\x15Classification'
    b'Request\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving.ModelSpecR\t'
    b'modelSpec\x12/\n\x05input\x18\x02 \x01(\x0b2\x19.tensorflow.serving.InputR\x05input"\x98'
    b'\x01\n\x16ClassificationResponse\x12<\n\nmodel_spec\x18\x02 \x01(\x0b2\x1d.tensorflow.s'
    b'erving.ModelSpecR\tmodelSpec\x12@\n\x06result\x18\x01 \x01(\x0b2(.tensorflow.ser'
    b'ving.ClassificationResultR\x06resultb\x06proto3'
)
