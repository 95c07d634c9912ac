"""TF Serving's gRPC services."""
