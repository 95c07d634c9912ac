"""Generated from input.proto by serving.protos.regenerate: do not edit."""

from serving.protos import example_pb2
from serving.protos import pool

pool.define(
    globals(),
    b'\n\x1aserving/protos/input.proto\x12\x12tensorflow.serving\x1a\x1cserving/pr'
    b'otos/example.proto">\n\x0bExampleList\x12/\n\x08examples\x18\x01 \x03(\x0b2\x13.tensor'
    b'flow.ExampleR\x08examples"x\n\x16ExampleListWithContext\x12/\n\x08examples'
    b'\x18\x01 \x03(\x0b2\x13.tensorflow.ExampleR\x08examples\x12-\n\x07context\x18\x02 \x01(\x0b2\x13.ten'
    b'sorflow.ExampleR\x07context"\xbe\x01\n\x05Input\x12D\n\x0cexample_list\x18\x01 \x01(\x0b2\x1f.t'
    b'ensorflow.serving.ExampleListH\x00R\x0bexampleList\x12g\n\x19example_list'
    b'_with_context\x18\x02 \x01(\x0b2*.tensorflow.serving.ExampleListWithCont'
    b'extH\x00R\x16exampleListWithContextB\x06\n\x04kindb\x06proto3'
)
