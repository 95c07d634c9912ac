"""Generated from prediction_log.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import classification_pb2
from gru_serving.protos import inference_pb2
from gru_serving.protos import logging_config_pb2
from gru_serving.protos import predict_pb2
from gru_serving.protos import regression_pb2
from gru_serving.protos import session_service_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b"\n'gru_serving/protos/prediction_log.proto\x12\x12tensorflow.servin"
    b'g\x1a\'gru_serving/protos/classification.proto\x1a"gru_serving/prot'
    b"os/inference.proto\x1a'gru_serving/protos/logging_config.proto\x1a"
    b' gru_serving/protos/predict.proto\x1a#gru_serving/protos/regres'
    b'sion.proto\x1a(gru_serving/protos/session_service.proto"\x9a\x01\n\x0bCla'
    b'ssifyLog\x12C\n\x07request\x18\x01 \x01(\x0b2).tensorflow.serving.Classificatio'
    b'nRequestR\x07request\x12F\n\x08response\x18\x02 \x01(\x0b2*.tensorflow.serving.Cla'
    b'ssificationResponseR\x08response"\x91\x01\n\nRegressLog\x12?\n\x07request\x18\x01 \x01('
    b'\x0b2%.tensorflow.serving.RegressionRequestR\x07request\x12B\n\x08respons'
    b'e\x18\x02 \x01(\x0b2&.tensorflow.serving.RegressionResponseR\x08response"\x8b\x01'
    b'\n\nPredictLog\x12<\n\x07request\x18\x01 \x01(\x0b2".tensorflow.serving.PredictRe'
    b'questR\x07request\x12?\n\x08response\x18\x02 \x01(\x0b2#.tensorflow.serving.Predic'
    b'tResponseR\x08response"\x93\x01\n\x12PredictStreamedLog\x12<\n\x07request\x18\x01 \x03(\x0b2'
    b'".tensorflow.serving.PredictRequestR\x07request\x12?\n\x08response\x18\x02 \x03'
    b'(\x0b2#.tensorflow.serving.PredictResponseR\x08response"\xa0\x01\n\x11MultiI'
    b'nferenceLog\x12C\n\x07request\x18\x01 \x01(\x0b2).tensorflow.serving.MultiInfer'
    b'enceRequestR\x07request\x12F\n\x08response\x18\x02 \x01(\x0b2*.tensorflow.serving.'
    b'MultiInferenceResponseR\x08response"\x94\x01\n\rSessionRunLog\x12?\n\x07reques'
    b't\x18\x01 \x01(\x0b2%.tensorflow.serving.SessionRunRequestR\x07request\x12B\n\x08r'
    b'esponse\x18\x02 \x01(\x0b2&.tensorflow.serving.SessionRunResponseR\x08respo'
    b'nse"\xad\x04\n\rPredictionLog\x12B\n\x0clog_metadata\x18\x01 \x01(\x0b2\x1f.tensorflow.ser'
    b'ving.LogMetadataR\x0blogMetadata\x12D\n\x0cclassify_log\x18\x02 \x01(\x0b2\x1f.tensor'
    b'flow.serving.ClassifyLogH\x00R\x0bclassifyLog\x12A\n\x0bregress_log\x18\x03 \x01(\x0b'
    b'2\x1e.tensorflow.serving.RegressLogH\x00R\nregressLog\x12A\n\x0bpredict_lo'
    b'g\x18\x06 \x01(\x0b2\x1e.tensorflow.serving.PredictLogH\x00R\npredictLog\x12Z\n\x14pre'
    b'dict_streamed_log\x18\x07 \x01(\x0b2&.tensorflow.serving.PredictStreamed'
    b'LogH\x00R\x12predictStreamedLog\x12W\n\x13multi_inference_log\x18\x04 \x01(\x0b2%.ten'
    b'sorflow.serving.MultiInferenceLogH\x00R\x11multiInferenceLog\x12K\n\x0fse'
    b'ssion_run_log\x18\x05 \x01(\x0b2!.tensorflow.serving.SessionRunLogH\x00R\rse'
    b'ssionRunLogB\n\n\x08log_typeb\x06proto3'
)
