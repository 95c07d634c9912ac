"""Generated from saved_model_config.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n+gru_serving/protos/saved_model_config.proto\x12\x12tensorflow.se'
    b'rving"\xc2\x01\n\x10SessionOverrides\x128\n\x16remote_op_remap_config\x18\x01 \x01(\x0cH\x00'
    b'R\x13remoteOpRemapConfig\x88\x01\x01\x12<\n\x18batch_op_rewriter_config\x18\x02 \x01(\x0cH\x01'
    b'R\x15batchOpRewriterConfig\x88\x01\x01B\x19\n\x17_remote_op_remap_configB\x1b\n\x19_ba'
    b'tch_op_rewriter_config"\xe9\x01\n\x10SavedModelConfig\x12V\n\x11session_overr'
    b'ides\x18\x01 \x01(\x0b2$.tensorflow.serving.SessionOverridesH\x00R\x10sessionO'
    b'verrides\x88\x01\x01\x123\n\x13tfrt_runtime_config\x18\x02 \x01(\x0cH\x01R\x11tfrtRuntimeConfi'
    b'g\x88\x01\x01\x12\x1a\n\x08critical\x18\x03 \x01(\x08R\x08criticalB\x14\n\x12_session_overridesB\x16\n\x14_t'
    b'frt_runtime_configb\x06proto3'
)
