"""Generated from struct.proto by serving.protos.regenerate: do not edit."""

from serving.protos import tensor_pb2
from serving.protos import tensor_shape_pb2
from serving.protos import types_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1bserving/protos/struct.proto\x12\ntensorflow\x1a\x1bserving/protos/te'
    b'nsor.proto\x1a!serving/protos/tensor_shape.proto\x1a\x1aserving/proto'
    b's/types.proto"\xd6\x07\n\x0fStructuredValue\x126\n\nnone_value\x18\x01 \x01(\x0b2\x15.tens'
    b'orflow.NoneValueH\x00R\tnoneValue\x12%\n\rfloat64_value\x18\x0b \x01(\x01H\x00R\x0cfloa'
    b't64Value\x12!\n\x0bint64_value\x18\x0c \x01(\x12H\x00R\nint64Value\x12#\n\x0cstring_value\x18'
    b'\r \x01(\tH\x00R\x0bstringValue\x12\x1f\n\nbool_value\x18\x0e \x01(\x08H\x00R\tboolValue\x12L\n\x12ten'
    b'sor_shape_value\x18\x1f \x01(\x0b2\x1c.tensorflow.TensorShapeProtoH\x00R\x10tenso'
    b'rShapeValue\x12D\n\x12tensor_dtype_value\x18  \x01(\x0e2\x14.tensorflow.DataTyp'
    b'eH\x00R\x10tensorDtypeValue\x12I\n\x11tensor_spec_value\x18! \x01(\x0b2\x1b.tensorflo'
    b'w.TensorSpecProtoH\x00R\x0ftensorSpecValue\x12C\n\x0ftype_spec_value\x18" \x01('
    b'\x0b2\x19.tensorflow.TypeSpecProtoH\x00R\rtypeSpecValue\x12_\n\x19bounded_ten'
    b'sor_spec_value\x18# \x01(\x0b2".tensorflow.BoundedTensorSpecProtoH\x00R\x16'
    b'boundedTensorSpecValue\x126\n\nlist_value\x183 \x01(\x0b2\x15.tensorflow.List'
    b'ValueH\x00R\tlistValue\x129\n\x0btuple_value\x184 \x01(\x0b2\x16.tensorflow.TupleVa'
    b'lueH\x00R\ntupleValue\x126\n\ndict_value\x185 \x01(\x0b2\x15.tensorflow.DictValue'
    b'H\x00R\tdictValue\x12I\n\x11named_tuple_value\x186 \x01(\x0b2\x1b.tensorflow.NamedT'
    b'upleValueH\x00R\x0fnamedTupleValue\x12<\n\x0ctensor_value\x187 \x01(\x0b2\x17.tensorf'
    b'low.TensorProtoH\x00R\x0btensorValue\x12:\n\x0bnumpy_value\x188 \x01(\x0b2\x17.tensor'
    b'flow.TensorProtoH\x00R\nnumpyValueB\x06\n\x04kind"\x0b\n\tNoneValue"@\n\tListV'
    b'alue\x123\n\x06values\x18\x01 \x03(\x0b2\x1b.tensorflow.StructuredValueR\x06values"A\n'
    b'\nTupleValue\x123\n\x06values\x18\x01 \x03(\x0b2\x1b.tensorflow.StructuredValueR\x06va'
    b'lues"\x9e\x01\n\tDictValue\x129\n\x06fields\x18\x01 \x03(\x0b2!.tensorflow.DictValue.Fi'
    b'eldsEntryR\x06fields\x1aV\n\x0bFieldsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x121\n\x05value\x18'
    b'\x02 \x01(\x0b2\x1b.tensorflow.StructuredValueR\x05value:\x028\x01"P\n\tPairValue\x12\x10'
    b'\n\x03key\x18\x01 \x01(\tR\x03key\x121\n\x05value\x18\x02 \x01(\x0b2\x1b.tensorflow.StructuredValue'
    b'R\x05value"T\n\x0fNamedTupleValue\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x12-\n\x06values\x18\x02 \x03'
    b'(\x0b2\x15.tensorflow.PairValueR\x06values"\x85\x01\n\x0fTensorSpecProto\x12\x12\n\x04nam'
    b'e\x18\x01 \x01(\tR\x04name\x122\n\x05shape\x18\x02 \x01(\x0b2\x1c.tensorflow.TensorShapeProtoR\x05'
    b'shape\x12*\n\x05dtype\x18\x03 \x01(\x0e2\x14.tensorflow.DataTypeR\x05dtype"\xf2\x01\n\x16Bounde'
    b'dTensorSpecProto\x12\x12\n\x04name\x18\x01 \x01(\tR\x04name\x122\n\x05shape\x18\x02 \x01(\x0b2\x1c.tensor'
    b'flow.TensorShapeProtoR\x05shape\x12*\n\x05dtype\x18\x03 \x01(\x0e2\x14.tensorflow.Dat'
    b'aTypeR\x05dtype\x121\n\x07minimum\x18\x04 \x01(\x0b2\x17.tensorflow.TensorProtoR\x07mini'
    b'mum\x121\n\x07maximum\x18\x05 \x01(\x0b2\x17.tensorflow.TensorProtoR\x07maximum"\xb8\x04\n\rT'
    b"ypeSpecProto\x12O\n\x0ftype_spec_class\x18\x01 \x01(\x0e2'.tensorflow.TypeSpecP"
    b'roto.TypeSpecClassR\rtypeSpecClass\x12:\n\ntype_state\x18\x02 \x01(\x0b2\x1b.tens'
    b'orflow.StructuredValueR\ttypeState\x12/\n\x14type_spec_class_name\x18\x03 '
    b'\x01(\tR\x11typeSpecClassName\x12.\n\x13num_flat_components\x18\x04 \x01(\x05R\x11numFlat'
    b'Components"\xb8\x02\n\rTypeSpecClass\x12\x0b\n\x07UNKNOWN\x10\x00\x12\x16\n\x12SPARSE_TENSOR_S'
    b'PEC\x10\x01\x12\x17\n\x13INDEXED_SLICES_SPEC\x10\x02\x12\x16\n\x12RAGGED_TENSOR_SPEC\x10\x03\x12\x15\n\x11TE'
    b'NSOR_ARRAY_SPEC\x10\x04\x12\x15\n\x11DATA_DATASET_SPEC\x10\x05\x12\x16\n\x12DATA_ITERATOR_SP'
    b'EC\x10\x06\x12\x11\n\rOPTIONAL_SPEC\x10\x07\x12\x14\n\x10PER_REPLICA_SPEC\x10\x08\x12\x11\n\rVARIABLE_SP'
    b'EC\x10\t\x12\x16\n\x12ROW_PARTITION_SPEC\x10\n\x12\x18\n\x14REGISTERED_TYPE_SPEC\x10\x0c\x12\x17\n\x13EX'
    b'TENSION_TYPE_SPEC\x10\r"\x04\x08\x0b\x10\x0bb\x06proto3'
)
