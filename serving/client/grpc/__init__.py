"""The client over gRPC."""
