"""From a trained run to answers over gRPC and REST."""
