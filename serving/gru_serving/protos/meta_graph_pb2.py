"""Generated from meta_graph.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import struct_pb2
from gru_serving.protos import tensor_pb2
from gru_serving.protos import tensor_shape_pb2
from gru_serving.protos import types_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n#gru_serving/protos/meta_graph.proto\x12\ntensorflow\x1a\x1fgru_servi'
    b'ng/protos/struct.proto\x1a\x1fgru_serving/protos/tensor.proto\x1a%gru'
    b'_serving/protos/tensor_shape.proto\x1a\x1egru_serving/protos/types'
    b'.proto"\xda\x04\n\nTensorInfo\x12\x14\n\x04name\x18\x01 \x01(\tH\x00R\x04name\x12A\n\ncoo_sparse\x18\x04 '
    b'\x01(\x0b2 .tensorflow.TensorInfo.CooSparseH\x00R\tcooSparse\x12S\n\x10compos'
    b'ite_tensor\x18\x05 \x01(\x0b2&.tensorflow.TensorInfo.CompositeTensorH\x00R\x0f'
    b'compositeTensor\x12*\n\x05dtype\x18\x02 \x01(\x0e2\x14.tensorflow.DataTypeR\x05dtype\x12'
    b'?\n\x0ctensor_shape\x18\x03 \x01(\x0b2\x1c.tensorflow.TensorShapeProtoR\x0btensorS'
    b'hape\x1a\xa0\x01\n\tCooSparse\x12,\n\x12values_tensor_name\x18\x01 \x01(\tR\x10valuesTensor'
    b'Name\x12.\n\x13indices_tensor_name\x18\x02 \x01(\tR\x11indicesTensorName\x125\n\x17dens'
    b'e_shape_tensor_name\x18\x03 \x01(\tR\x14denseShapeTensorName\x1a\x81\x01\n\x0fComposit'
    b'eTensor\x126\n\ttype_spec\x18\x01 \x01(\x0b2\x19.tensorflow.TypeSpecProtoR\x08typeS'
    b'pec\x126\n\ncomponents\x18\x02 \x03(\x0b2\x16.tensorflow.TensorInfoR\ncomponentsB'
    b'\n\n\x08encoding"\xef\x03\n\x0cSignatureDef\x12<\n\x06inputs\x18\x01 \x03(\x0b2$.tensorflow.Si'
    b'gnatureDef.InputsEntryR\x06inputs\x12?\n\x07outputs\x18\x02 \x03(\x0b2%.tensorflow'
    b'.SignatureDef.OutputsEntryR\x07outputs\x12\x1f\n\x0bmethod_name\x18\x03 \x01(\tR\nme'
    b'thodName\x12B\n\x08defaults\x18\x04 \x03(\x0b2&.tensorflow.SignatureDef.Default'
    b'sEntryR\x08defaults\x1aQ\n\x0bInputsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12,\n\x05value\x18\x02'
    b' \x01(\x0b2\x16.tensorflow.TensorInfoR\x05value:\x028\x01\x1aR\n\x0cOutputsEntry\x12\x10\n\x03k'
    b'ey\x18\x01 \x01(\tR\x03key\x12,\n\x05value\x18\x02 \x01(\x0b2\x16.tensorflow.TensorInfoR\x05value:'
    b'\x028\x01\x1aT\n\rDefaultsEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.tens'
    b'orflow.TensorProtoR\x05value:\x028\x01"c\n\x0cAssetFileDef\x127\n\x0btensor_info'
    b'\x18\x01 \x01(\x0b2\x16.tensorflow.TensorInfoR\ntensorInfo\x12\x1a\n\x08filename\x18\x02 \x01(\t'
    b'R\x08filename"\xa7\x02\n\x0cMetaGraphDef\x12H\n\rmeta_info_def\x18\x01 \x01(\x0b2$.tensorf'
    b'low.MetaGraphDef.MetaInfoDefR\x0bmetaInfoDef\x12O\n\rsignature_def\x18\x05'
    b' \x03(\x0b2*.tensorflow.MetaGraphDef.SignatureDefEntryR\x0csignatureD'
    b'ef\x1a!\n\x0bMetaInfoDef\x12\x12\n\x04tags\x18\x04 \x03(\tR\x04tags\x1aY\n\x11SignatureDefEntry\x12\x10'
    b'\n\x03key\x18\x01 \x01(\tR\x03key\x12.\n\x05value\x18\x02 \x01(\x0b2\x18.tensorflow.SignatureDefR\x05v'
    b'alue:\x028\x01"G\n\nSavedModel\x129\n\x0bmeta_graphs\x18\x02 \x03(\x0b2\x18.tensorflow.Met'
    b'aGraphDefR\nmetaGraphsb\x06proto3'
)
