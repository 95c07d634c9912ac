"""Generated from logging_config.proto by serving.protos.regenerate: do not edit."""

from serving.protos import model_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n#serving/protos/logging_config.proto\x12\x12tensorflow.serving\x1a\x19g'
    b'oogle/protobuf/any.proto\x1a\x1aserving/protos/model.proto"Q\n\x12LogC'
    b"ollectorConfig\x12\x12\n\x04type\x18\x01 \x01(\tR\x04type\x12'\n\x0ffilename_prefix\x18\x02 \x01(\tR"
    b'\x0efilenamePrefix"\x7f\n\x15PerTaskSamplingConfig\x12\x0e\n\x02dc\x18\x01 \x01(\tR\x02dc\x12"\n\n'
    b'task_index\x18\x02 \x01(\x05H\x00R\ttaskIndex\x88\x01\x01\x12#\n\rsampling_rate\x18\x03 \x01(\x01R\x0csam'
    b'plingRateB\r\n\x0b_task_index"\x92\x02\n\x0eSamplingConfig\x12#\n\rsampling_rate'
    b'\x18\x01 \x01(\x01R\x0csamplingRate\x12d\n\x19per_task_sampling_configs\x18\x03 \x03(\x0b2).te'
    b'nsorflow.serving.PerTaskSamplingConfigR\x16perTaskSamplingConfi'
    b'gs\x12\x1e\n\nattributes\x18\x02 \x01(\x05R\nattributes"U\n\nAttributes\x12\x10\n\x0cATTR_DEF'
    b'AULT\x10\x00\x12\x17\n\x13ATTR_REQUEST_ORIGIN\x10\x01\x12\x1c\n\x18ATTR_REQUEST_CRITICALITY\x10'
    b'\x02"\x80\x02\n\rLoggingConfig\x12X\n\x14log_collector_config\x18\x01 \x01(\x0b2&.tensorfl'
    b'ow.serving.LogCollectorConfigR\x12logCollectorConfig\x12K\n\x0fsamplin'
    b'g_config\x18\x02 \x01(\x0b2".tensorflow.serving.SamplingConfigR\x0esampling'
    b'Config\x12H\n\x15custom_logging_config\x18\x03 \x01(\x0b2\x14.google.protobuf.AnyR'
    b'\x13customLoggingConfig"\x92\x03\n\x0bLogMetadata\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.t'
    b'ensorflow.serving.ModelSpecR\tmodelSpec\x12K\n\x0fsampling_config\x18\x02 '
    b'\x01(\x0b2".tensorflow.serving.SamplingConfigR\x0esamplingConfig\x12(\n\x10s'
    b'aved_model_tags\x18\x03 \x03(\tR\x0esavedModelTags\x12%\n\x0etimestamp_secs\x18\x04 \x01('
    b'\x03R\rtimestampSecs\x12\x0e\n\x02dc\x18\x05 \x01(\tR\x02dc\x12%\n\x0erequest_origin\x18\x06 \x01(\tR\rre'
    b'questOrigin\x12/\n\x13request_criticality\x18\x07 \x01(\tR\x12requestCriticality'
    b'\x12?\n\x1csafe_aggregation_privacy_key\x18\x08 \x01(\x03R\x19safeAggregationPriva'
    b'cyKeyb\x06proto3'
)
