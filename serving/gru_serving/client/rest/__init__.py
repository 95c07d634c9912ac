"""The client over REST. Imports no grpc."""
