"""Generated from tensor.proto by serving.protos.regenerate: do not edit."""

from serving.protos import tensor_shape_pb2
from serving.protos import types_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1bserving/protos/tensor.proto\x12\ntensorflow\x1a!serving/protos/te'
    b'nsor_shape.proto\x1a\x1aserving/protos/types.proto"\xf6\x02\n\x13ResourceHan'
    b'dleProto\x12\x16\n\x06device\x18\x01 \x01(\tR\x06device\x12\x1c\n\tcontainer\x18\x02 \x01(\tR\tcontain'
    b'er\x12\x12\n\x04name\x18\x03 \x01(\tR\x04name\x12\x1b\n\thash_code\x18\x04 \x01(\x04R\x08hashCode\x12&\n\x0fmaybe'
    b'_type_name\x18\x05 \x01(\tR\rmaybeTypeName\x12Y\n\x11dtypes_and_shapes\x18\x06 \x03(\x0b2-'
    b'.tensorflow.ResourceHandleProto.DtypeAndShapeR\x0fdtypesAndShap'
    b'es\x1ao\n\rDtypeAndShape\x12*\n\x05dtype\x18\x01 \x01(\x0e2\x14.tensorflow.DataTypeR\x05dt'
    b'ype\x122\n\x05shape\x18\x02 \x01(\x0b2\x1c.tensorflow.TensorShapeProtoR\x05shapeJ\x04\x08\x07\x10'
    b'\x08"\xc8\x05\n\x0bTensorProto\x12*\n\x05dtype\x18\x01 \x01(\x0e2\x14.tensorflow.DataTypeR\x05dtyp'
    b'e\x12?\n\x0ctensor_shape\x18\x02 \x01(\x0b2\x1c.tensorflow.TensorShapeProtoR\x0btenso'
    b'rShape\x12%\n\x0eversion_number\x18\x03 \x01(\x05R\rversionNumber\x12%\n\x0etensor_cont'
    b'ent\x18\x04 \x01(\x0cR\rtensorContent\x12\x19\n\x08half_val\x18\r \x03(\x05R\x07halfVal\x12\x1b\n\tfloat'
    b'_val\x18\x05 \x03(\x02R\x08floatVal\x12\x1d\n\ndouble_val\x18\x06 \x03(\x01R\tdoubleVal\x12\x17\n\x07int_v'
    b'al\x18\x07 \x03(\x05R\x06intVal\x12\x1d\n\nstring_val\x18\x08 \x03(\x0cR\tstringVal\x12!\n\x0cscomplex_'
    b'val\x18\t \x03(\x02R\x0bscomplexVal\x12\x1b\n\tint64_val\x18\n \x03(\x03R\x08int64Val\x12\x19\n\x08bool_'
    b'val\x18\x0b \x03(\x08R\x07boolVal\x12!\n\x0cdcomplex_val\x18\x0c \x03(\x01R\x0bdcomplexVal\x12O\n\x13res'
    b'ource_handle_val\x18\x0e \x03(\x0b2\x1f.tensorflow.ResourceHandleProtoR\x11res'
    b'ourceHandleVal\x12C\n\x0bvariant_val\x18\x0f \x03(\x0b2".tensorflow.VariantTens'
    b'orDataProtoR\nvariantVal\x12\x1d\n\nuint32_val\x18\x10 \x03(\rR\tuint32Val\x12\x1d\n\nui'
    b'nt64_val\x18\x11 \x03(\x04R\tuint64Val\x12\x1d\n\nfloat8_val\x18\x12 \x01(\x0cR\tfloat8Val"\x84\x01\n'
    b'\x16VariantTensorDataProto\x12\x1b\n\ttype_name\x18\x01 \x01(\tR\x08typeName\x12\x1a\n\x08meta'
    b'data\x18\x02 \x01(\x0cR\x08metadata\x121\n\x07tensors\x18\x03 \x03(\x0b2\x17.tensorflow.TensorPro'
    b'toR\x07tensorsb\x06proto3'
)
