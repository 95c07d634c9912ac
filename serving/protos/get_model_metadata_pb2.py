"""Generated from get_model_metadata.proto by serving.protos.regenerate: do not edit."""

from serving.protos import meta_graph_pb2
from serving.protos import model_pb2
from serving.protos import pool

pool.define(
    globals(),
    b"\n'serving/protos/get_model_metadata.proto\x12\x12tensorflow.servin"
    b'g\x1a\x19google/protobuf/any.proto\x1a\x1fserving/protos/meta_graph.prot'
    b'o\x1a\x1aserving/protos/model.proto"\xc8\x01\n\x0fSignatureDefMap\x12Z\n\rsignatu'
    b're_def\x18\x01 \x03(\x0b25.tensorflow.serving.SignatureDefMap.SignatureD'
    b'efEntryR\x0csignatureDef\x1aY\n\x11SignatureDefEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key'
    b'\x12.\n\x05value\x18\x02 \x01(\x0b2\x18.tensorflow.SignatureDefR\x05value:\x028\x01"~\n\x17GetM'
    b'odelMetadataRequest\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorflow.serving'
    b'.ModelSpecR\tmodelSpec\x12%\n\x0emetadata_field\x18\x02 \x03(\tR\rmetadataField'
    b'"\x83\x02\n\x18GetModelMetadataResponse\x12<\n\nmodel_spec\x18\x01 \x01(\x0b2\x1d.tensorfl'
    b'ow.serving.ModelSpecR\tmodelSpec\x12V\n\x08metadata\x18\x02 \x03(\x0b2:.tensorfl'
    b'ow.serving.GetModelMetadataResponse.MetadataEntryR\x08metadata\x1a'
    b'Q\n\rMetadataEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12*\n\x05value\x18\x02 \x01(\x0b2\x14.google.p'
    b'rotobuf.AnyR\x05value:\x028\x01b\x06proto3'
)
