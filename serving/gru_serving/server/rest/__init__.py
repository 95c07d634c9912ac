"""TF Serving's REST API. Imports no grpc."""
