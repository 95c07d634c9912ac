"""A model with an operation of TensorFlow Text."""

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel


def save_with_text_op(directory, op):
    """Binarizes text. Written as protos, because TensorFlow Text must not be imported here."""
    saved_model = SavedModel(saved_model_schema_version=1)
    meta_graph = saved_model.meta_graphs.add()
    meta_graph.meta_info_def.tags.append("serve")
    text = meta_graph.graph_def.node.add(name="text", op="Placeholder")
    text.attr["dtype"].type = tf.string.as_datatype_enum
    bits = meta_graph.graph_def.node.add(name="bits", op=op, input=["text"])
    for name, value in {"word_length": 2, "bits_per_char": 4, "replacement_char": 0}.items():
        bits.attr[name].i = value
    signature = meta_graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    signature.inputs["text"].name, signature.outputs["bits"].name = "text:0", "bits:0"
    signature.inputs["text"].dtype = tf.string.as_datatype_enum
    signature.outputs["bits"].dtype = tf.float32.as_datatype_enum
    directory.mkdir(parents=True)
    (directory / "saved_model.pb").write_bytes(saved_model.SerializeToString())
    return directory
