"""Generated from model_management.proto by serving.protos.regenerate: do not edit."""

from serving.protos import model_server_config_pb2
from serving.protos import status_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n%serving/protos/model_management.proto\x12\x12tensorflow.serving\x1a'
    b'(serving/protos/model_server_config.proto\x1a\x1bserving/protos/st'
    b'atus.proto"w\n\x13ReloadConfigRequest\x12=\n\x06config\x18\x01 \x01(\x0b2%.tensorfl'
    b'ow.serving.ModelServerConfigR\x06config\x12!\n\x0cmetric_names\x18\x02 \x03(\tR\x0b'
    b'metricNames"\x83\x01\n\x14ReloadConfigResponse\x127\n\x06status\x18\x01 \x01(\x0b2\x1f.tenso'
    b'rflow.serving.StatusProtoR\x06status\x122\n\x06metric\x18\x02 \x03(\x0b2\x1a.tensorfl'
    b'ow.serving.MetricR\x06metric"b\n\x06Metric\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x122\n\x14i'
    b'nt64_value_increase\x18\x02 \x01(\x03H\x00R\x12int64ValueIncreaseB\x10\n\x0evalue_inc'
    b'reaseb\x06proto3'
)
