"""Generated from prediction_log.proto by serving.protos.regenerate: do not edit."""

from serving.protos import classification_pb2
from serving.protos import inference_pb2
from serving.protos import logging_config_pb2
from serving.protos import predict_pb2
from serving.protos import regression_pb2
from serving.protos import session_service_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n#serving/protos/prediction_log.proto\x12\x12tensorflow.serving\x1a#s'
    b'erving/protos/classification.proto\x1a\x1eserving/protos/inference'
    b'.proto\x1a#serving/protos/logging_config.proto\x1a\x1cserving/protos/'
    b'predict.proto\x1a\x1fserving/protos/regression.proto\x1a$serving/prot'
    b'os/session_service.proto"\x9a\x01\n\x0bClassifyLog\x12C\n\x07request\x18\x01 \x01(\x0b2).'
    b'tensorflow.serving.ClassificationRequestR\x07request\x12F\n\x08respons'
    b'e\x18\x02 \x01(\x0b2*.tensorflow.serving.ClassificationResponseR\x08respons'
    b'e"\x91\x01\n\nRegressLog\x12?\n\x07request\x18\x01 \x01(\x0b2%.tensorflow.serving.Regre'
    b'ssionRequestR\x07request\x12B\n\x08response\x18\x02 \x01(\x0b2&.tensorflow.serving'
    b'.RegressionResponseR\x08response"\x8b\x01\n\nPredictLog\x12<\n\x07request\x18\x01 \x01('
    b'\x0b2".tensorflow.serving.PredictRequestR\x07request\x12?\n\x08response\x18\x02'
    b' \x01(\x0b2#.tensorflow.serving.PredictResponseR\x08response"\x93\x01\n\x12Pred'
    b'ictStreamedLog\x12<\n\x07request\x18\x01 \x03(\x0b2".tensorflow.serving.Predict'
    b'RequestR\x07request\x12?\n\x08response\x18\x02 \x03(\x0b2#.tensorflow.serving.Pred'
    b'ictResponseR\x08response"\xa0\x01\n\x11MultiInferenceLog\x12C\n\x07request\x18\x01 \x01(\x0b'
    b'2).tensorflow.serving.MultiInferenceRequestR\x07request\x12F\n\x08resp'
    b'onse\x18\x02 \x01(\x0b2*.tensorflow.serving.MultiInferenceResponseR\x08resp'
    b'onse"\x94\x01\n\rSessionRunLog\x12?\n\x07request\x18\x01 \x01(\x0b2%.tensorflow.serving'
    b'.SessionRunRequestR\x07request\x12B\n\x08response\x18\x02 \x01(\x0b2&.tensorflow.s'
    b'erving.SessionRunResponseR\x08response"\xad\x04\n\rPredictionLog\x12B\n\x0clog'
    b'_metadata\x18\x01 \x01(\x0b2\x1f.tensorflow.serving.LogMetadataR\x0blogMetadat'
    b'a\x12D\n\x0cclassify_log\x18\x02 \x01(\x0b2\x1f.tensorflow.serving.ClassifyLogH\x00R\x0b'
    b'classifyLog\x12A\n\x0bregress_log\x18\x03 \x01(\x0b2\x1e.tensorflow.serving.Regres'
    b'sLogH\x00R\nregressLog\x12A\n\x0bpredict_log\x18\x06 \x01(\x0b2\x1e.tensorflow.serving'
    b'.PredictLogH\x00R\npredictLog\x12Z\n\x14predict_streamed_log\x18\x07 \x01(\x0b2&.te'
    b'nsorflow.serving.PredictStreamedLogH\x00R\x12predictStreamedLog\x12W\n'
    b'\x13multi_inference_log\x18\x04 \x01(\x0b2%.tensorflow.serving.MultiInferen'
    b'ceLogH\x00R\x11multiInferenceLog\x12K\n\x0fsession_run_log\x18\x05 \x01(\x0b2!.tensor'
    b'flow.serving.SessionRunLogH\x00R\rsessionRunLogB\n\n\x08log_typeb\x06pro'
    b'to3'
)
