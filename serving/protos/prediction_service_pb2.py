"""Generated from prediction_service.proto by serving.protos.regenerate: do not edit."""

from serving.protos import classification_pb2
from serving.protos import get_model_metadata_pb2
from serving.protos import inference_pb2
from serving.protos import predict_pb2
from serving.protos import regression_pb2
from serving.protos import pool

pool.define(
    globals(),
    b"\n'serving/protos/prediction_service.proto\x12\x12tensorflow.servin"
    b"g\x1a#serving/protos/classification.proto\x1a'serving/protos/get_m"
    b'odel_metadata.proto\x1a\x1eserving/protos/inference.proto\x1a\x1cserving'
    b'/protos/predict.proto\x1a\x1fserving/protos/regression.proto2\xfc\x03\n\x11P'
    b'redictionService\x12a\n\x08Classify\x12).tensorflow.serving.Classifica'
    b'tionRequest\x1a*.tensorflow.serving.ClassificationResponse\x12X\n\x07R'
    b'egress\x12%.tensorflow.serving.RegressionRequest\x1a&.tensorflow.s'
    b'erving.RegressionResponse\x12R\n\x07Predict\x12".tensorflow.serving.Pr'
    b'edictRequest\x1a#.tensorflow.serving.PredictResponse\x12g\n\x0eMultiIn'
    b'ference\x12).tensorflow.serving.MultiInferenceRequest\x1a*.tensorf'
    b'low.serving.MultiInferenceResponse\x12m\n\x10GetModelMetadata\x12+.ten'
    b'sorflow.serving.GetModelMetadataRequest\x1a,.tensorflow.serving'
    b'.GetModelMetadataResponseb\x06proto3'
)
