"""Generated from struct.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import tensor_pb2
from gru_serving.protos import tensor_shape_pb2
from gru_serving.protos import types_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n\x1fgru_serving/protos/struct.proto\x12\ntensorflow\x1a\x1fgru_serving/p'
    b'rotos/tensor.proto\x1a%gru_serving/protos/tensor_shape.proto\x1a\x1eg'
    b'ru_serving/protos/types.proto"\xd6\x07\n\x0fStructuredValue\x126\n\nnone_va'
    b'lue\x18\x01 \x01(\x0b2\x15.tensorflow.NoneValueH\x00R\tnoneValue\x12%\n\rfloat64_val'
    b'ue\x18\x0b \x01(\x01H\x00R\x0cfloat64Value\x12!\n\x0bint64_value\x18\x0c \x01(\x12H\x00R\nint64Value\x12'
    b'#\n\x0cstring_value\x18\r \x01(\tH\x00R\x0bstringValue\x12\x1f\n\nbool_value\x18\x0e \x01(\x08H\x00R\t'
    b'boolValue\x12L\n\x12tensor_shape_value\x18\x1f \x01(\x0b2\x1c.tensorflow.TensorSha'
    b'peProtoH\x00R\x10tensorShapeValue\x12D\n\x12tensor_dtype_value\x18  \x01(\x0e2\x14.te'
    b'nsorflow.DataTypeH\x00R\x10tensorDtypeValue\x12I\n\x11tensor_spec_value\x18!'
    b' \x01(\x0b2\x1b.tensorflow.TensorSpecProtoH\x00R\x0ftensorSpecValue\x12C\n\x0ftype'
    b'_spec_value\x18" \x01(\x0b2\x19.tensorflow.TypeSpecProtoH\x00R\rtypeSpecValu'
    b'e\x12_\n\x19bounded_tensor_spec_value\x18# \x01(\x0b2".tensorflow.BoundedTen'
    b'sorSpecProtoH\x00R\x16boundedTensorSpecValue\x126\n\nlist_value\x183 \x01(\x0b2\x15'
    b'.tensorflow.ListValueH\x00R\tlistValue\x129\n\x0btuple_value\x184 \x01(\x0b2\x16.te'
    b'nsorflow.TupleValueH\x00R\ntupleValue\x126\n\ndict_value\x185 \x01(\x0b2\x15.tens'
    b'orflow.DictValueH\x00R\tdictValue\x12I\n\x11named_tuple_value\x186 \x01(\x0b2\x1b.t'
    b'ensorflow.NamedTupleValueH\x00R\x0fnamedTupleValue\x12<\n\x0ctensor_value'
    b'\x187 \x01(\x0b2\x17.tensorflow.TensorProtoH\x00R\x0btensorValue\x12:\n\x0bnumpy_valu'
    b'e\x188 \x01(\x0b2\x17.tensorflow.TensorProtoH\x00R\nnumpyValueB\x06\n\x04kind"\x0b\n\tNo'
    b'neValue"@\n\tListValue\x123\n\x06values\x18\x01 \x03(\x0b2\x1b.tensorflow.Structured'
    b'ValueR\x06values"A\n\nTupleValue\x123\n\x06values\x18\x01 \x03(\x0b2\x1b.tensorflow.Str'
    b'ucturedValueR\x06values"\x9e\x01\n\tDictValue\x129\n\x06fields\x18\x01 \x03(\x0b2!.tensorf'
    b'low.DictValue.FieldsEntryR\x06fields\x1aV\n\x0bFieldsEntry\x12\x10\n\x03key\x18\x01 \x01('
    b'\tR\x03key\x121\n\x05value\x18\x02 \x01(\x0b2\x1b.tensorflow.StructuredValueR\x05value:\x028'
    b'\x01"P\n\tPairValue\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x121\n\x05value\x18\x02 \x01(\x0b2\x1b.tensorflow'
    b'.StructuredValueR\x05value"T\n\x0fNamedTupleValue\x12\x12\n\x04name\x18\x01 \x01(\tR\x04na'
    b'me\x12-\n\x06values\x18\x02 \x03(\x0b2\x15.tensorflow.PairValueR\x06values"\x85\x01\n\x0fTensor'
    b'SpecProto\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x122\n\x05shape\x18\x02 \x01(\x0b2\x1c.tensorflow.Te'
    b'nsorShapeProtoR\x05shape\x12*\n\x05dtype\x18\x03 \x01(\x0e2\x14.tensorflow.DataTypeR\x05'
    b'dtype"\xf2\x01\n\x16BoundedTensorSpecProto\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x122\n\x05shap'
    b'e\x18\x02 \x01(\x0b2\x1c.tensorflow.TensorShapeProtoR\x05shape\x12*\n\x05dtype\x18\x03 \x01(\x0e2'
    b'\x14.tensorflow.DataTypeR\x05dtype\x121\n\x07minimum\x18\x04 \x01(\x0b2\x17.tensorflow.T'
    b'ensorProtoR\x07minimum\x121\n\x07maximum\x18\x05 \x01(\x0b2\x17.tensorflow.TensorProt'
    b'oR\x07maximum"\xb8\x04\n\rTypeSpecProto\x12O\n\x0ftype_spec_class\x18\x01 \x01(\x0e2\'.tens'
    b'orflow.TypeSpecProto.TypeSpecClassR\rtypeSpecClass\x12:\n\ntype_st'
    b'ate\x18\x02 \x01(\x0b2\x1b.tensorflow.StructuredValueR\ttypeState\x12/\n\x14type_sp'
    b'ec_class_name\x18\x03 \x01(\tR\x11typeSpecClassName\x12.\n\x13num_flat_component'
    b's\x18\x04 \x01(\x05R\x11numFlatComponents"\xb8\x02\n\rTypeSpecClass\x12\x0b\n\x07UNKNOWN\x10\x00\x12\x16\n'
    b'\x12SPARSE_TENSOR_SPEC\x10\x01\x12\x17\n\x13INDEXED_SLICES_SPEC\x10\x02\x12\x16\n\x12RAGGED_TEN'
    b'SOR_SPEC\x10\x03\x12\x15\n\x11TENSOR_ARRAY_SPEC\x10\x04\x12\x15\n\x11DATA_DATASET_SPEC\x10\x05\x12\x16\n\x12'
    b'DATA_ITERATOR_SPEC\x10\x06\x12\x11\n\rOPTIONAL_SPEC\x10\x07\x12\x14\n\x10PER_REPLICA_SPEC\x10'
    b'\x08\x12\x11\n\rVARIABLE_SPEC\x10\t\x12\x16\n\x12ROW_PARTITION_SPEC\x10\n\x12\x18\n\x14REGISTERED_T'
    b'YPE_SPEC\x10\x0c\x12\x17\n\x13EXTENSION_TYPE_SPEC\x10\r"\x04\x08\x0b\x10\x0bb\x06proto3'
)
