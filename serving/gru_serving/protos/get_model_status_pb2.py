"""Generated from get_model_status.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import model_pb2
from gru_serving.protos import status_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n)gru_serving/protos/get_model_status.proto\x12\x12tensorflow.serv'
    b'ing\x1a\x1egru_serving/protos/model.proto\x1a\x1fgru_serving/protos/stat'
    b'us.proto"U\n\x15GetModelStatusRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tens'
    b'orflow.serving.ModelSpecR\tmodelSpec"\x80\x02\n\x12ModelVersionStatus\x12\x18'
    b'\n\x07version\x18\x01 \x01(\x03R\x07version\x12B\n\x05state\x18\x02 \x01(\x0e2,.tensorflow.serving'
    b'.ModelVersionStatus.StateR\x05state\x127\n\x06status\x18\x03 \x01(\x0b2\x1f.tensorflo'
    b'w.serving.StatusProtoR\x06status"S\n\x05State\x12\x0b\n\x07UNKNOWN\x10\x00\x12\t\n\x05START'
    b'\x10\n\x12\x0b\n\x07LOADING\x10\x14\x12\r\n\tAVAILABLE\x10\x1e\x12\r\n\tUNLOADING\x10(\x12\x07\n\x03END\x102"r\n\x16Ge'
    b'tModelStatusResponse\x12X\n\x14model_version_status\x18\x01 \x03(\x0b2&.tensorf'
    b'low.serving.ModelVersionStatusR\x12modelVersionStatusb\x06proto3'
)
