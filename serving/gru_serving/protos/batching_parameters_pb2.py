"""Generated from batching_parameters.proto by gru_serving.protos.regenerate: do not edit."""

from gru_serving.protos import pool

pool.define(
    globals(),
    b'\n,gru_serving/protos/batching_parameters.proto\x12\x12tensorflow.s'
    b'erving\x1a\x1egoogle/protobuf/wrappers.proto"\xa6\x05\n\x12BatchingParameter'
    b's\x12A\n\x0emax_batch_size\x18\x01 \x01(\x0b2\x1b.google.protobuf.Int64ValueR\x0cmaxB'
    b'atchSize\x12M\n\x14batch_timeout_micros\x18\x02 \x01(\x0b2\x1b.google.protobuf.Int'
    b'64ValueR\x12batchTimeoutMicros\x12M\n\x14max_enqueued_batches\x18\x03 \x01(\x0b2\x1b.'
    b'google.protobuf.Int64ValueR\x12maxEnqueuedBatches\x12G\n\x11num_batch_'
    b'threads\x18\x04 \x01(\x0b2\x1b.google.protobuf.Int64ValueR\x0fnumBatchThreads\x12'
    b'F\n\x10thread_pool_name\x18\x05 \x01(\x0b2\x1c.google.protobuf.StringValueR\x0ethr'
    b'eadPoolName\x12.\n\x13allowed_batch_sizes\x18\x06 \x03(\x03R\x11allowedBatchSizes\x12'
    b';\n\x1apad_variable_length_inputs\x18\x07 \x01(\x08R\x17padVariableLengthInputs'
    b'\x12[\n\x1cenable_large_batch_splitting\x18\x08 \x01(\x0b2\x1a.google.protobuf.Boo'
    b'lValueR\x19enableLargeBatchSplitting\x12T\n\x18max_execution_batch_siz'
    b'e\x18\t \x01(\x0b2\x1b.google.protobuf.Int64ValueR\x15maxExecutionBatchSizeb'
    b'\x06proto3'
)
