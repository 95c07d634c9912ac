"""Generated from batching_parameters.proto by serving.protos.regenerate: do not edit."""

from serving.protos import pool

pool.define(
    globals(),
    b'\n(serving/protos/batching_parameters.proto\x12\x12tensorflow.servi'
    b'ng\x1a\x1egoogle/protobuf/wrappers.proto"\xa6\x05\n\x12BatchingParameters\x12A\n'
    b'\x0emax_batch_size\x18\x01 \x01(\x0b2\x1b.google.protobuf.Int64ValueR\x0cmaxBatch'
    b'Size\x12M\n\x14batch_timeout_micros\x18\x02 \x01(\x0b2\x1b.google.protobuf.Int64Va'
    b'lueR\x12batchTimeoutMicros\x12M\n\x14max_enqueued_batches\x18\x03 \x01(\x0b2\x1b.goog'
    b'le.protobuf.Int64ValueR\x12maxEnqueuedBatches\x12G\n\x11num_batch_thre'
    b'ads\x18\x04 \x01(\x0b2\x1b.google.protobuf.Int64ValueR\x0fnumBatchThreads\x12F\n\x10t'
    b'hread_pool_name\x18\x05 \x01(\x0b2\x1c.google.protobuf.StringValueR\x0ethreadP'
    b'oolName\x12.\n\x13allowed_batch_sizes\x18\x06 \x03(\x03R\x11allowedBatchSizes\x12;\n\x1ap'
    b'ad_variable_length_inputs\x18\x07 \x01(\x08R\x17padVariableLengthInputs\x12[\n\x1c'
    b'enable_large_batch_splitting\x18\x08 \x01(\x0b2\x1a.google.protobuf.BoolVal'
    b'ueR\x19enableLargeBatchSplitting\x12T\n\x18max_execution_batch_size\x18\t '
    b'\x01(\x0b2\x1b.google.protobuf.Int64ValueR\x15maxExecutionBatchSizeb\x06pro'
    b'to3'
)
