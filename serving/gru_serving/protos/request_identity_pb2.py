"""Generated from request_identity.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n)gru_serving/protos/request_identity.proto\x12\x0bgru_serving"M\n\x0f'
    b'RequestIdentity\x12\x1e\n\nrequest_id\x18\xe9\x07 \x01(\tR\trequestId\x12\x1a\n\x08trace_id\x18'
    b'\xea\x07 \x01(\tR\x07traceIdb\x06proto3'
)
