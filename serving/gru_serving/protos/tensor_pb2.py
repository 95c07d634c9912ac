"""Generated from tensor.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import tensor_shape_pb2
from gru_serving.protos import types_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n\x1fgru_serving/protos/tensor.proto\x12\ntensorflow\x1a%gru_serving/p'
    b'rotos/tensor_shape.proto\x1a\x1egru_serving/protos/types.proto"\xf6\x02\n'
    b'\x13ResourceHandleProto\x12\x16\n\x06device\x18\x01 \x01(\tR\x06device\x12\x1c\n\tcontainer\x18\x02 '
    b'\x01(\tR\tcontainer\x12\x12\n\x04name\x18\x03 \x01(\tR\x04name\x12\x1b\n\thash_code\x18\x04 \x01(\x04R\x08hashC'
    b'ode\x12&\n\x0fmaybe_type_name\x18\x05 \x01(\tR\rmaybeTypeName\x12Y\n\x11dtypes_and_sh'
    b'apes\x18\x06 \x03(\x0b2-.tensorflow.ResourceHandleProto.DtypeAndShapeR\x0fd'
    b'typesAndShapes\x1ao\n\rDtypeAndShape\x12*\n\x05dtype\x18\x01 \x01(\x0e2\x14.tensorflow.'
    b'DataTypeR\x05dtype\x122\n\x05shape\x18\x02 \x01(\x0b2\x1c.tensorflow.TensorShapeProto'
    b'R\x05shapeJ\x04\x08\x07\x10\x08"\xc8\x05\n\x0bTensorProto\x12*\n\x05dtype\x18\x01 \x01(\x0e2\x14.tensorflow.Da'
    b'taTypeR\x05dtype\x12?\n\x0ctensor_shape\x18\x02 \x01(\x0b2\x1c.tensorflow.TensorShape'
    b'ProtoR\x0btensorShape\x12%\n\x0eversion_number\x18\x03 \x01(\x05R\rversionNumber\x12%\n'
    b'\x0etensor_content\x18\x04 \x01(\x0cR\rtensorContent\x12\x19\n\x08half_val\x18\r \x03(\x05R\x07half'
    b'Val\x12\x1b\n\tfloat_val\x18\x05 \x03(\x02R\x08floatVal\x12\x1d\n\ndouble_val\x18\x06 \x03(\x01R\tdouble'
    b'Val\x12\x17\n\x07int_val\x18\x07 \x03(\x05R\x06intVal\x12\x1d\n\nstring_val\x18\x08 \x03(\x0cR\tstringVal\x12'
    b'!\n\x0cscomplex_val\x18\t \x03(\x02R\x0bscomplexVal\x12\x1b\n\tint64_val\x18\n \x03(\x03R\x08int64'
    b'Val\x12\x19\n\x08bool_val\x18\x0b \x03(\x08R\x07boolVal\x12!\n\x0cdcomplex_val\x18\x0c \x03(\x01R\x0bdcompl'
    b'exVal\x12O\n\x13resource_handle_val\x18\x0e \x03(\x0b2\x1f.tensorflow.ResourceHand'
    b'leProtoR\x11resourceHandleVal\x12C\n\x0bvariant_val\x18\x0f \x03(\x0b2".tensorflow'
    b'.VariantTensorDataProtoR\nvariantVal\x12\x1d\n\nuint32_val\x18\x10 \x03(\rR\tuin'
    b't32Val\x12\x1d\n\nuint64_val\x18\x11 \x03(\x04R\tuint64Val\x12\x1d\n\nfloat8_val\x18\x12 \x01(\x0cR\tf'
    b'loat8Val"\x84\x01\n\x16VariantTensorDataProto\x12\x1b\n\ttype_name\x18\x01 \x01(\tR\x08type'
    b'Name\x12\x1a\n\x08metadata\x18\x02 \x01(\x0cR\x08metadata\x121\n\x07tensors\x18\x03 \x03(\x0b2\x17.tensorfl'
    b'ow.TensorProtoR\x07tensorsb\x06proto3'
)
