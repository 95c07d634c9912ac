"""The use cases, independent of the transport."""
