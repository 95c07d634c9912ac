"""Generated from meta_graph.proto by serving.protos.regenerate: do not edit."""

from serving.protos import struct_pb2
from serving.protos import tensor_pb2
from serving.protos import tensor_shape_pb2
from serving.protos import types_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1fserving/protos/meta_graph.proto\x12\ntensorflow\x1a\x1bserving/proto'
    b's/struct.proto\x1a\x1bserving/protos/tensor.proto\x1a!serving/protos/'
    b'tensor_shape.proto\x1a\x1aserving/protos/types.proto"\xda\x04\n\nTensorInf'
    b'o\x12\x14\n\x04name\x18\x01 \x01(\tH\x00R\x04name\x12A\n\ncoo_sparse\x18\x04 \x01(\x0b2 .tensorflow.Ten'
    b'sorInfo.CooSparseH\x00R\tcooSparse\x12S\n\x10composite_tensor\x18\x05 \x01(\x0b2&.t'
    b'ensorflow.TensorInfo.CompositeTensorH\x00R\x0fcompositeTensor\x12*\n\x05d'
    b'type\x18\x02 \x01(\x0e2\x14.tensorflow.DataTypeR\x05dtype\x12?\n\x0ctensor_shape\x18\x03 \x01('
    b'\x0b2\x1c.tensorflow.TensorShapeProtoR\x0btensorShape\x1a\xa0\x01\n\tCooSparse\x12,'
    b'\n\x12values_tensor_name\x18\x01 \x01(\tR\x10valuesTensorName\x12.\n\x13indices_tens'
    b'or_name\x18\x02 \x01(\tR\x11indicesTensorName\x125\n\x17dense_shape_tensor_name\x18'
    b'\x03 \x01(\tR\x14denseShapeTensorName\x1a\x81\x01\n\x0fCompositeTensor\x126\n\ttype_spec'
    b'\x18\x01 \x01(\x0b2\x19.tensorflow.TypeSpecProtoR\x08typeSpec\x126\n\ncomponents\x18\x02 '
    b'\x03(\x0b2\x16.tensorflow.TensorInfoR\ncomponentsB\n\n\x08encoding"\xef\x03\n\x0cSign'
    b'atureDef\x12<\n\x06inputs\x18\x01 \x03(\x0b2$.tensorflow.SignatureDef.InputsEnt'
    b'ryR\x06inputs\x12?\n\x07outputs\x18\x02 \x03(\x0b2%.tensorflow.SignatureDef.Output'
    b'sEntryR\x07outputs\x12\x1f\n\x0bmethod_name\x18\x03 \x01(\tR\nmethodName\x12B\n\x08defaults'
    b'\x18\x04 \x03(\x0b2&.tensorflow.SignatureDef.DefaultsEntryR\x08defaults\x1aQ\n\x0b'
    b'InputsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12,\n\x05value\x18\x02 \x01(\x0b2\x16.tensorflow.Te'
    b'nsorInfoR\x05value:\x028\x01\x1aR\n\x0cOutputsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12,\n\x05val'
    b'ue\x18\x02 \x01(\x0b2\x16.tensorflow.TensorInfoR\x05value:\x028\x01\x1aT\n\rDefaultsEntry'
    b'\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.tensorflow.TensorProtoR\x05'
    b'value:\x028\x01"c\n\x0cAssetFileDef\x127\n\x0btensor_info\x18\x01 \x01(\x0b2\x16.tensorflow.'
    b'TensorInfoR\ntensorInfo\x12\x1a\n\x08filename\x18\x02 \x01(\tR\x08filename"\xa7\x02\n\x0cMetaG'
    b'raphDef\x12H\n\rmeta_info_def\x18\x01 \x01(\x0b2$.tensorflow.MetaGraphDef.Met'
    b'aInfoDefR\x0bmetaInfoDef\x12O\n\rsignature_def\x18\x05 \x03(\x0b2*.tensorflow.Me'
    b'taGraphDef.SignatureDefEntryR\x0csignatureDef\x1a!\n\x0bMetaInfoDef\x12\x12\n'
    b'\x04tags\x18\x04 \x03(\tR\x04tags\x1aY\n\x11SignatureDefEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12.\n\x05'
    b'value\x18\x02 \x01(\x0b2\x18.tensorflow.SignatureDefR\x05value:\x028\x01"G\n\nSavedMod'
    b'el\x129\n\x0bmeta_graphs\x18\x02 \x03(\x0b2\x18.tensorflow.MetaGraphDefR\nmetaGraph'
    b'sb\x06proto3'
)
