"""Generated from get_model_status.proto by serving.protos.regenerate: do not edit."""

from serving.protos import model_pb2
from serving.protos import status_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n%serving/protos/get_model_status.proto\x12\x12tensorflow.serving\x1a'
    b'\x1aserving/protos/model.proto\x1a\x1bserving/protos/status.proto"U\n\x15'
    b'GetModelStatusRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.servi'
    b'ng.ModelSpecR\tmodelSpec"\x80\x02\n\x12ModelVersionStatus\x12\x18\n\x07version\x18\x01 '
    b'\x01(\x03R\x07version\x12B\n\x05state\x18\x02 \x01(\x0e2,.tensorflow.serving.ModelVersio'
    b'nStatus.StateR\x05state\x127\n\x06status\x18\x03 \x01(\x0b2\x1f.tensorflow.serving.St'
    b'atusProtoR\x06status"S\n\x05State\x12\x0b\n\x07UNKNOWN\x10\x00\x12\t\n\x05START\x10\n\x12\x0b\n\x07LOADIN'
    b'G\x10\x14\x12\r\n\tAVAILABLE\x10\x1e\x12\r\n\tUNLOADING\x10(\x12\x07\n\x03END\x102"r\n\x16GetModelStatus'
    b'Response\x12X\n\x14model_version_status\x18\x01 \x03(\x0b2&.tensorflow.serving.'
    b'ModelVersionStatusR\x12modelVersionStatusb\x06proto3'
)
