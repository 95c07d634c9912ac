"""Generated from ssl_config.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n#gru_serving/protos/ssl_config.proto\x12\x12tensorflow.serving"\x8d\x01'
    b'\n\tSSLConfig\x12\x1d\n\nserver_key\x18\x01 \x01(\tR\tserverKey\x12\x1f\n\x0bserver_cert\x18\x02 '
    b'\x01(\tR\nserverCert\x12\x1b\n\tcustom_ca\x18\x03 \x01(\tR\x08customCa\x12#\n\rclient_verif'
    b'y\x18\x04 \x01(\x08R\x0cclientVerifyb\x06proto3'
)
