"""Generated from example.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n gru_serving/protos/example.proto\x12\ntensorflow"!\n\tBytesList\x12'
    b'\x14\n\x05value\x18\x01 \x03(\x0cR\x05value"!\n\tFloatList\x12\x14\n\x05value\x18\x01 \x03(\x02R\x05value"!\n\t'
    b'Int64List\x12\x14\n\x05value\x18\x01 \x03(\x03R\x05value"\xb9\x01\n\x07Feature\x126\n\nbytes_list\x18\x01 '
    b'\x01(\x0b2\x15.tensorflow.BytesListH\x00R\tbytesList\x126\n\nfloat_list\x18\x02 \x01(\x0b2'
    b'\x15.tensorflow.FloatListH\x00R\tfloatList\x126\n\nint64_list\x18\x03 \x01(\x0b2\x15.te'
    b'nsorflow.Int64ListH\x00R\tint64ListB\x06\n\x04kind"\x98\x01\n\x08Features\x12;\n\x07feat'
    b'ure\x18\x01 \x03(\x0b2!.tensorflow.Features.FeatureEntryR\x07feature\x1aO\n\x0cFea'
    b'tureEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12)\n\x05value\x18\x02 \x01(\x0b2\x13.tensorflow.Feat'
    b'ureR\x05value:\x028\x01"<\n\x0bFeatureList\x12-\n\x07feature\x18\x01 \x03(\x0b2\x13.tensorflow.'
    b'FeatureR\x07feature"\xb5\x01\n\x0cFeatureLists\x12L\n\x0cfeature_list\x18\x01 \x03(\x0b2).te'
    b'nsorflow.FeatureLists.FeatureListEntryR\x0bfeatureList\x1aW\n\x10Featu'
    b'reListEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.tensorflow.Fe'
    b'atureListR\x05value:\x028\x01";\n\x07Example\x120\n\x08features\x18\x01 \x01(\x0b2\x14.tensorfl'
    b'ow.FeaturesR\x08features"\x80\x01\n\x0fSequenceExample\x12.\n\x07context\x18\x01 \x01(\x0b2\x14'
    b'.tensorflow.FeaturesR\x07context\x12=\n\rfeature_lists\x18\x02 \x01(\x0b2\x18.tenso'
    b'rflow.FeatureListsR\x0cfeatureListsb\x06proto3'
)
