"""Generated from session_service.proto by serving.protos.regenerate: do not edit."""

from serving.protos import model_pb2
from serving.protos import named_tensor_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n$serving/protos/session_service.proto\x12\x12tensorflow.serving\x1a\x1a'
    b'serving/protos/model.proto\x1a!serving/protos/named_tensor.prot'
    b'o"\xe2\x01\n\x11SessionRunRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.ser'
    b'ving.ModelSpecR\tmodelSpec\x120\n\x04feed\x18\x02 \x03(\x0b2\x1c.tensorflow.NamedTe'
    b'nsorProtoR\x04feed\x12\x14\n\x05fetch\x18\x03 \x03(\tR\x05fetch\x12\x16\n\x06target\x18\x04 \x03(\tR\x06targe'
    b't\x12/\n\x14tensor_name_is_alias\x18\x06 \x01(\x08R\x11tensorNameIsAlias"\x88\x01\n\x12Sessi'
    b'onRunResponse\x12<\n\nmodel_spec\x18\x03 \x01(\x0b2\x1d.tensorflow.serving.Model'
    b'SpecR\tmodelSpec\x124\n\x06tensor\x18\x01 \x03(\x0b2\x1c.tensorflow.NamedTensorProt'
    b'oR\x06tensorb\x06proto3'
)
