"""Files of TensorFlow Lite: converted from functions, and edited."""

import flatbuffers
import tensorflow as tf
from flatbuffers import flexbuffers
from tensorflow.lite.python import schema_py_generated as schema

from gru_serving.codecs.signature import PREDICT_METHOD
from gru_serving.protos.meta_graph_pb2 import SignatureDef


def convert(function, *specs, custom_ops=False):
    """A file without any signatures."""
    concrete = tf.function(function, input_signature=specs).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = custom_ops
    return converter.convert()


def edit(model, entry=None, rename=None, buffer=None):
    """A file with that `signature_defs_metadata`, or with other names for its tensors."""
    edited = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(model), 0))
    for tensor in edited.subgraphs[0].tensors:
        tensor.name = (rename or {}).get(tensor.name.decode(), tensor.name)
    if entry is not None:
        stored, metadata = schema.BufferT(), schema.MetadataT()
        stored.data = list(entry)
        metadata.name = "signature_defs_metadata"
        metadata.buffer = len(edited.buffers) if buffer is None else buffer
        edited.buffers.append(stored)
        edited.metadata = [*(edited.metadata or []), metadata]
    builder = flatbuffers.Builder()
    builder.Finish(edited.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def flexbuffer_map(entries):
    """As TensorFlow's tools write it: the values are strings of any bytes."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in sorted(entries.items()):
            builder.Key(key)
            # `String` accepts only text.
            builder._WriteBlob(value, append_zero=True, type_=flexbuffers.Type.STRING)
    return bytes(builder.Finish())


def signature_def(inputs, outputs, method=PREDICT_METHOD):
    proto = SignatureDef(method_name=method)
    for infos, names in ((proto.inputs, inputs), (proto.outputs, outputs)):
        for alias, name in names.items():
            infos[alias].name = name
    return proto


def with_signatures(model, **signatures):
    entries = {key: proto.SerializeToString() for key, proto in signatures.items()}
    return edit(model, flexbuffer_map(entries))
