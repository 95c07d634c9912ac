"""Generated from shadow_config.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n&gru_serving/protos/shadow_config.proto\x12\x0bgru_serving"\xa2\x01\n\x0cSh'
    b'adowConfig\x12\x1a\n\x07version\x18\x01 \x01(\x03H\x00R\x07version\x12\x16\n\x05label\x18\x02 \x01(\tH\x00R\x05lab'
    b'el\x12\x19\n\x05share\x18\x03 \x01(\x01H\x01R\x05share\x88\x01\x01\x12!\n\ttolerance\x18\x04 \x01(\x01H\x02R\ttoleranc'
    b'e\x88\x01\x01B\x08\n\x06targetB\x08\n\x06_shareB\x0c\n\n_toleranceb\x06proto3'
)
