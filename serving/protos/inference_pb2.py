"""Generated from inference.proto by serving.protos.regenerate: do not edit."""

from serving.protos import classification_pb2
from serving.protos import input_pb2
from serving.protos import model_pb2
from serving.protos import regression_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1eserving/protos/inference.proto\x12\x12tensorflow.serving\x1a#servin'
    b'g/protos/classification.proto\x1a\x1aserving/protos/input.proto\x1a\x1as'
    b'erving/protos/model.proto\x1a\x1fserving/protos/regression.proto"n'
    b'\n\rInferenceTask\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving.Mod'
    b'elSpecR\tmodelSpec\x12\x1f\n\x0bmethod_name\x18\x02 \x01(\tR\nmethodName"\x8f\x02\n\x0fInfer'
    b'enceResult\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving.ModelSpe'
    b'cR\tmodelSpec\x12_\n\x15classification_result\x18\x02 \x01(\x0b2(.tensorflow.ser'
    b'ving.ClassificationResultH\x00R\x14classificationResult\x12S\n\x11regress'
    b'ion_result\x18\x03 \x01(\x0b2$.tensorflow.serving.RegressionResultH\x00R\x10re'
    b'gressionResultB\x08\n\x06result"\x81\x01\n\x15MultiInferenceRequest\x127\n\x05tasks\x18'
    b'\x01 \x03(\x0b2!.tensorflow.serving.InferenceTaskR\x05tasks\x12/\n\x05input\x18\x02 \x01'
    b'(\x0b2\x19.tensorflow.serving.InputR\x05input"W\n\x16MultiInferenceRespon'
    b'se\x12=\n\x07results\x18\x01 \x03(\x0b2#.tensorflow.serving.InferenceResultR\x07re'
    b'sultsb\x06proto3'
)
