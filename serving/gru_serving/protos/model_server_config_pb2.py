"""Generated from model_server_config.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import file_system_storage_path_source_pb2
from gru_serving.protos import logging_config_pb2
from gru_serving.protos import shadow_config_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n,gru_serving/protos/model_server_config.proto\x12\x12tensorflow.s'
    b'erving\x1a\x19google/protobuf/any.proto\x1a8gru_serving/protos/file_s'
    b"ystem_storage_path_source.proto\x1a'gru_serving/protos/logging_"
    b'config.proto\x1a&gru_serving/protos/shadow_config.proto"\xcd\x04\n\x0bMod'
    b'elConfig\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x12\x1b\n\tbase_path\x18\x02 \x01(\tR\x08basePath\x12@\n'
    b'\nmodel_type\x18\x03 \x01(\x0e2\x1d.tensorflow.serving.ModelTypeB\x02\x18\x01R\tmodelT'
    b'ype\x12%\n\x0emodel_platform\x18\x04 \x01(\tR\rmodelPlatform\x12}\n\x14model_version_'
    b'policy\x18\x07 \x01(\x0b2K.tensorflow.serving.FileSystemStoragePathSourc'
    b'eConfig.ServableVersionPolicyR\x12modelVersionPolicy\x12Y\n\x0eversion'
    b'_labels\x18\x08 \x03(\x0b22.tensorflow.serving.ModelConfig.VersionLabels'
    b'EntryR\rversionLabels\x12H\n\x0elogging_config\x18\x06 \x01(\x0b2!.tensorflow.se'
    b'rving.LoggingConfigR\rloggingConfig\x122\n\x06shadow\x18\xe9\x07 \x01(\x0b2\x19.gru_se'
    b'rving.ShadowConfigR\x06shadow\x1a@\n\x12VersionLabelsEntry\x12\x10\n\x03key\x18\x01 \x01('
    b'\tR\x03key\x12\x14\n\x05value\x18\x02 \x01(\x03R\x05value:\x028\x01J\x04\x08\x05\x10\x06J\x04\x08\t\x10\n"J\n\x0fModelConfigL'
    b'ist\x127\n\x06config\x18\x01 \x03(\x0b2\x1f.tensorflow.serving.ModelConfigR\x06config'
    b'"\xb8\x01\n\x11ModelServerConfig\x12Q\n\x11model_config_list\x18\x01 \x01(\x0b2#.tensorfl'
    b'ow.serving.ModelConfigListH\x00R\x0fmodelConfigList\x12F\n\x13custom_mode'
    b'l_config\x18\x02 \x01(\x0b2\x14.google.protobuf.AnyH\x00R\x11customModelConfigB\x08\n'
    b'\x06config*B\n\tModelType\x12\x1a\n\x16MODEL_TYPE_UNSPECIFIED\x10\x00\x12\x0e\n\nTENSORFL'
    b'OW\x10\x01\x12\t\n\x05OTHER\x10\x02b\x06proto3'
)
