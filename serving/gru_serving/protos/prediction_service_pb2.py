"""Generated from prediction_service.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import classification_pb2
from gru_serving.protos import get_model_metadata_pb2
from gru_serving.protos import inference_pb2
from gru_serving.protos import predict_pb2
from gru_serving.protos import regression_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n+gru_serving/protos/prediction_service.proto\x12\x12tensorflow.se'
    b"rving\x1a'gru_serving/protos/classification.proto\x1a+gru_serving/"
    b'protos/get_model_metadata.proto\x1a"gru_serving/protos/inferenc'
    b'e.proto\x1a gru_serving/protos/predict.proto\x1a#gru_serving/proto'
    b's/regression.proto2\xfc\x03\n\x11PredictionService\x12a\n\x08Classify\x12).tenso'
    b'rflow.serving.ClassificationRequest\x1a*.tensorflow.serving.Cla'
    b'ssificationResponse\x12X\n\x07Regress\x12%.tensorflow.serving.Regressi'
    b'onRequest\x1a&.tensorflow.serving.RegressionResponse\x12R\n\x07Predict'
    b'\x12".tensorflow.serving.PredictRequest\x1a#.tensorflow.serving.Pr'
    b'edictResponse\x12g\n\x0eMultiInference\x12).tensorflow.serving.MultiIn'
    b'ferenceRequest\x1a*.tensorflow.serving.MultiInferenceResponse\x12m'
    b'\n\x10GetModelMetadata\x12+.tensorflow.serving.GetModelMetadataRequ'
    b'est\x1a,.tensorflow.serving.GetModelMetadataResponseb\x06proto3'
)
