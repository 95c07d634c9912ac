"""Generated from session_service.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import model_pb2
from gru_serving.protos import named_tensor_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n(gru_serving/protos/session_service.proto\x12\x12tensorflow.servi'
    b'ng\x1a\x1egru_serving/protos/model.proto\x1a%gru_serving/protos/named'
    b'_tensor.proto"\xe2\x01\n\x11SessionRunRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.te'
    b'nsorflow.serving.ModelSpecR\tmodelSpec\x120\n\x04feed\x18\x02 \x03(\x0b2\x1c.tensor'
    b'flow.NamedTensorProtoR\x04feed\x12\x14\n\x05fetch\x18\x03 \x03(\tR\x05fetch\x12\x16\n\x06target\x18'
    b'\x04 \x03(\tR\x06target\x12/\n\x14tensor_name_is_alias\x18\x06 \x01(\x08R\x11tensorNameIsAli'
    b'as"\x88\x01\n\x12SessionRunResponse\x12<\n\nmodel_spec\x18\x03 \x01(\x0b2\x1d.tensorflow.s'
    b'erving.ModelSpecR\tmodelSpec\x124\n\x06tensor\x18\x01 \x03(\x0b2\x1c.tensorflow.Nam'
    b'edTensorProtoR\x06tensorb\x06proto3'
)
