"""Generated from saved_model_config.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b"\n'serving/protos/saved_model_config.proto\x12\x12tensorflow.servin"
    b'g"\xc2\x01\n\x10SessionOverrides\x128\n\x16remote_op_remap_config\x18\x01 \x01(\x0cH\x00R\x13re'
    b'moteOpRemapConfig\x88\x01\x01\x12<\n\x18batch_op_rewriter_config\x18\x02 \x01(\x0cH\x01R\x15ba'
    b'tchOpRewriterConfig\x88\x01\x01B\x19\n\x17_remote_op_remap_configB\x1b\n\x19_batch_'
    b'op_rewriter_config"\xe9\x01\n\x10SavedModelConfig\x12V\n\x11session_overrides'
    b'\x18\x01 \x01(\x0b2$.tensorflow.serving.SessionOverridesH\x00R\x10sessionOverr'
    b'ides\x88\x01\x01\x123\n\x13tfrt_runtime_config\x18\x02 \x01(\x0cH\x01R\x11tfrtRuntimeConfig\x88\x01\x01'
    b'\x12\x1a\n\x08critical\x18\x03 \x01(\x08R\x08criticalB\x14\n\x12_session_overridesB\x16\n\x14_tfrt_'
    b'runtime_configb\x06proto3'
)
