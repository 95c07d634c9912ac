"""Generated from logging_config.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import model_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b"\n'gru_serving/protos/logging_config.proto\x12\x12tensorflow.servin"
    b'g\x1a\x19google/protobuf/any.proto\x1a\x1egru_serving/protos/model.proto'
    b'"Q\n\x12LogCollectorConfig\x12\x12\n\x04type\x18\x01 \x01(\tR\x04type\x12\'\n\x0ffilename_prefi'
    b'x\x18\x02 \x01(\tR\x0efilenamePrefix"\x7f\n\x15PerTaskSamplingConfig\x12\x0e\n\x02dc\x18\x01 \x01(\t'
    b'R\x02dc\x12"\n\ntask_index\x18\x02 \x01(\x05H\x00R\ttaskIndex\x88\x01\x01\x12#\n\rsampling_rate\x18\x03 '
    b'\x01(\x01R\x0csamplingRateB\r\n\x0b_task_index"\x92\x02\n\x0eSamplingConfig\x12#\n\rsampl'
    b'ing_rate\x18\x01 \x01(\x01R\x0csamplingRate\x12d\n\x19per_task_sampling_configs\x18\x03 '
    b'\x03(\x0b2).tensorflow.serving.PerTaskSamplingConfigR\x16perTaskSampl'
    b'ingConfigs\x12\x1e\n\nattributes\x18\x02 \x01(\x05R\nattributes"U\n\nAttributes\x12\x10\n\x0c'
    b'ATTR_DEFAULT\x10\x00\x12\x17\n\x13ATTR_REQUEST_ORIGIN\x10\x01\x12\x1c\n\x18ATTR_REQUEST_CRIT'
    b'ICALITY\x10\x02"\x80\x02\n\rLoggingConfig\x12X\n\x14log_collector_config\x18\x01 \x01(\x0b2&.'
    b'tensorflow.serving.LogCollectorConfigR\x12logCollectorConfig\x12K\n'
    b'\x0fsampling_config\x18\x02 \x01(\x0b2".tensorflow.serving.SamplingConfigR\x0e'
    b'samplingConfig\x12H\n\x15custom_logging_config\x18\x03 \x01(\x0b2\x14.google.proto'
    b'buf.AnyR\x13customLoggingConfig"\x92\x03\n\x0bLogMetadata\x12<\n\nmodel_spec\x18\x01'
    b' \x01(\x0b2\x1d.tensorflow.serving.ModelSpecR\tmodelSpec\x12K\n\x0fsampling_c'
    b'onfig\x18\x02 \x01(\x0b2".tensorflow.serving.SamplingConfigR\x0esamplingCon'
    b'fig\x12(\n\x10saved_model_tags\x18\x03 \x03(\tR\x0esavedModelTags\x12%\n\x0etimestamp_s'
    b'ecs\x18\x04 \x01(\x03R\rtimestampSecs\x12\x0e\n\x02dc\x18\x05 \x01(\tR\x02dc\x12%\n\x0erequest_origin\x18\x06'
    b' \x01(\tR\rrequestOrigin\x12/\n\x13request_criticality\x18\x07 \x01(\tR\x12requestCri'
    b'ticality\x12?\n\x1csafe_aggregation_privacy_key\x18\x08 \x01(\x03R\x19safeAggregat'
    b'ionPrivacyKeyb\x06proto3'
)
