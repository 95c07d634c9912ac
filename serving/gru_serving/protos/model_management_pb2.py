"""Generated from model_management.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import model_server_config_pb2
from gru_serving.protos import status_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n)gru_serving/protos/model_management.proto\x12\x12tensorflow.serv'
    b'ing\x1a,gru_serving/protos/model_server_config.proto\x1a\x1fgru_servi'
    b'ng/protos/status.proto"w\n\x13ReloadConfigRequest\x12=\n\x06config\x18\x01 \x01('
    b'\x0b2%.tensorflow.serving.ModelServerConfigR\x06config\x12!\n\x0cmetric_n'
    b'ames\x18\x02 \x03(\tR\x0bmetricNames"\x83\x01\n\x14ReloadConfigResponse\x127\n\x06status\x18\x01'
    b' \x01(\x0b2\x1f.tensorflow.serving.StatusProtoR\x06status\x122\n\x06metric\x18\x02 \x03('
    b'\x0b2\x1a.tensorflow.serving.MetricR\x06metric"b\n\x06Metric\x12\x12\n\x04name\x18\x01 \x01('
    b'\tR\x04name\x122\n\x14int64_value_increase\x18\x02 \x01(\x03H\x00R\x12int64ValueIncreaseB'
    b'\x10\n\x0evalue_increaseb\x06proto3'
)
