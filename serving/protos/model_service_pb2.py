"""Generated from model_service.proto by serving.protos.regenerate: do not edit."""

from serving.protos import get_model_status_pb2
from serving.protos import model_management_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n"serving/protos/model_service.proto\x12\x12tensorflow.serving\x1a%se'
    b'rving/protos/get_model_status.proto\x1a%serving/protos/model_ma'
    b'nagement.proto2\xe7\x01\n\x0cModelService\x12g\n\x0eGetModelStatus\x12).tensorfl'
    b'ow.serving.GetModelStatusRequest\x1a*.tensorflow.serving.GetMod'
    b"elStatusResponse\x12n\n\x19HandleReloadConfigRequest\x12'.tensorflow.s"
    b'erving.ReloadConfigRequest\x1a(.tensorflow.serving.ReloadConfig'
    b'Responseb\x06proto3'
)
