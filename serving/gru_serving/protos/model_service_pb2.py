"""Generated from model_service.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import get_model_status_pb2
from gru_serving.protos import model_management_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n&gru_serving/protos/model_service.proto\x12\x12tensorflow.serving'
    b'\x1a)gru_serving/protos/get_model_status.proto\x1a)gru_serving/pro'
    b'tos/model_management.proto2\xe7\x01\n\x0cModelService\x12g\n\x0eGetModelStatu'
    b's\x12).tensorflow.serving.GetModelStatusRequest\x1a*.tensorflow.se'
    b"rving.GetModelStatusResponse\x12n\n\x19HandleReloadConfigRequest\x12'."
    b'tensorflow.serving.ReloadConfigRequest\x1a(.tensorflow.serving.'
    b'ReloadConfigResponseb\x06proto3'
)
