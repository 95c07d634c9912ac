"""Generated from get_model_metadata.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import meta_graph_pb2
from gru_serving.protos import model_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n+gru_serving/protos/get_model_metadata.proto\x12\x12tensorflow.se'
    b'rving\x1a\x19google/protobuf/any.proto\x1a#gru_serving/protos/meta_gr'
    b'aph.proto\x1a\x1egru_serving/protos/model.proto"\xc8\x01\n\x0fSignatureDefMa'
    b'p\x12Z\n\rsignature_def\x18\x01 \x03(\x0b25.tensorflow.serving.SignatureDefMa'
    b'p.SignatureDefEntryR\x0csignatureDef\x1aY\n\x11SignatureDefEntry\x12\x10\n\x03ke'
    b'y\x18\x01 \x01(\tR\x03key\x12.\n\x05value\x18\x02 \x01(\x0b2\x18.tensorflow.SignatureDefR\x05value'
    b':\x028\x01"~\n\x17GetModelMetadataRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensor'
    b'flow.serving.ModelSpecR\tmodelSpec\x12%\n\x0emetadata_field\x18\x02 \x03(\tR\rm'
    b'etadataField"\x83\x02\n\x18GetModelMetadataResponse\x12<\n\nmodel_spec\x18\x01 \x01('
    b'\x0b2\x1d.tensorflow.serving.ModelSpecR\tmodelSpec\x12V\n\x08metadata\x18\x02 \x03('
    b'\x0b2:.tensorflow.serving.GetModelMetadataResponse.MetadataEntr'
    b'yR\x08metadata\x1aQ\n\rMetadataEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12*\n\x05value\x18\x02 \x01('
    b'\x0b2\x14.google.protobuf.AnyR\x05value:\x028\x01b\x06proto3'
)
