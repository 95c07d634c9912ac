"""Generated from example.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1cserving/protos/example.proto\x12\ntensorflow"!\n\tBytesList\x12\x14\n\x05v'
    b'alue\x18\x01 \x03(\x0cR\x05value"!\n\tFloatList\x12\x14\n\x05value\x18\x01 \x03(\x02R\x05value"!\n\tInt6'
    b'4List\x12\x14\n\x05value\x18\x01 \x03(\x03R\x05value"\xb9\x01\n\x07Feature\x126\n\nbytes_list\x18\x01 \x01(\x0b2'
    b'\x15.tensorflow.BytesListH\x00R\tbytesList\x126\n\nfloat_list\x18\x02 \x01(\x0b2\x15.te'
    b'nsorflow.FloatListH\x00R\tfloatList\x126\n\nint64_list\x18\x03 \x01(\x0b2\x15.tensor'
    b'flow.Int64ListH\x00R\tint64ListB\x06\n\x04kind"\x98\x01\n\x08Features\x12;\n\x07feature\x18'
    b'\x01 \x03(\x0b2!.tensorflow.Features.FeatureEntryR\x07feature\x1aO\n\x0cFeature'
    b'Entry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12)\n\x05value\x18\x02 \x01(\x0b2\x13.tensorflow.FeatureR'
    b'\x05value:\x028\x01"<\n\x0bFeatureList\x12-\n\x07feature\x18\x01 \x03(\x0b2\x13.tensorflow.Feat'
    b'ureR\x07feature"\xb5\x01\n\x0cFeatureLists\x12L\n\x0cfeature_list\x18\x01 \x03(\x0b2).tensor'
    b'flow.FeatureLists.FeatureListEntryR\x0bfeatureList\x1aW\n\x10FeatureLi'
    b'stEntry\x12\x10\n\x03key\x18\x01 \x01(\tR\x03key\x12-\n\x05value\x18\x02 \x01(\x0b2\x17.tensorflow.Featur'
    b'eListR\x05value:\x028\x01";\n\x07Example\x120\n\x08features\x18\x01 \x01(\x0b2\x14.tensorflow.F'
    b'eaturesR\x08features"\x80\x01\n\x0fSequenceExample\x12.\n\x07context\x18\x01 \x01(\x0b2\x14.ten'
    b'sorflow.FeaturesR\x07context\x12=\n\rfeature_lists\x18\x02 \x01(\x0b2\x18.tensorflo'
    b'w.FeatureListsR\x0cfeatureListsb\x06proto3'
)
