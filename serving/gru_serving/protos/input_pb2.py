"""Generated from input.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import example_pb2
from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n\x1egru_serving/protos/input.proto\x12\x12tensorflow.serving\x1a gru_se'
    b'rving/protos/example.proto">\n\x0bExampleList\x12/\n\x08examples\x18\x01 \x03(\x0b2'
    b'\x13.tensorflow.ExampleR\x08examples"x\n\x16ExampleListWithContext\x12/\n\x08'
    b'examples\x18\x01 \x03(\x0b2\x13.tensorflow.ExampleR\x08examples\x12-\n\x07context\x18\x02 \x01'
    b'(\x0b2\x13.tensorflow.ExampleR\x07context"\xbe\x01\n\x05Input\x12D\n\x0cexample_list\x18\x01'
    b' \x01(\x0b2\x1f.tensorflow.serving.ExampleListH\x00R\x0bexampleList\x12g\n\x19exam'
    b'ple_list_with_context\x18\x02 \x01(\x0b2*.tensorflow.serving.ExampleList'
    b'WithContextH\x00R\x16exampleListWithContextB\x06\n\x04kindb\x06proto3'
)
