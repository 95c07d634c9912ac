"""Generated from model_server_config.proto by serving.protos.regenerate: do not edit."""

from serving.protos import file_system_storage_path_source_pb2
from serving.protos import logging_config_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n(serving/protos/model_server_config.proto\x12\x12tensorflow.servi'
    b'ng\x1a\x19google/protobuf/any.proto\x1a4serving/protos/file_system_st'
    b'orage_path_source.proto\x1a#serving/protos/logging_config.proto'
    b'"\x99\x04\n\x0bModelConfig\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x12\x1b\n\tbase_path\x18\x02 \x01(\tR\x08bas'
    b'ePath\x12@\n\nmodel_type\x18\x03 \x01(\x0e2\x1d.tensorflow.serving.ModelTypeB\x02\x18\x01'
    b'R\tmodelType\x12%\n\x0emodel_platform\x18\x04 \x01(\tR\rmodelPlatform\x12}\n\x14model_'
    b'version_policy\x18\x07 \x01(\x0b2K.tensorflow.serving.FileSystemStorageP'
    b'athSourceConfig.ServableVersionPolicyR\x12modelVersionPolicy\x12Y\n'
    b'\x0eversion_labels\x18\x08 \x03(\x0b22.tensorflow.serving.ModelConfig.Versi'
    b'onLabelsEntryR\rversionLabels\x12H\n\x0elogging_config\x18\x06 \x01(\x0b2!.tenso'
    b'rflow.serving.LoggingConfigR\rloggingConfig\x1a@\n\x12VersionLabelsE'
    b'ntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12\x14\n\x05value\x18\x02 \x01(\x03R\x05value:\x028\x01J\x04\x08\x05\x10\x06J\x04\x08\t\x10\n'
    b'"J\n\x0fModelConfigList\x127\n\x06config\x18\x01 \x03(\x0b2\x1f.tensorflow.serving.Mod'
    b'elConfigR\x06config"\xb8\x01\n\x11ModelServerConfig\x12Q\n\x11model_config_list\x18'
    b'\x01 \x01(\x0b2#.tensorflow.serving.ModelConfigListH\x00R\x0fmodelConfigLis'
    b't\x12F\n\x13custom_model_config\x18\x02 \x01(\x0b2\x14.google.protobuf.AnyH\x00R\x11cust'
    b'omModelConfigB\x08\n\x06config*B\n\tModelType\x12\x1a\n\x16MODEL_TYPE_UNSPECIFI'
    b'ED\x10\x00\x12\x0e\n\nTENSORFLOW\x10\x01\x12\t\n\x05OTHER\x10\x02b\x06proto3'
)
