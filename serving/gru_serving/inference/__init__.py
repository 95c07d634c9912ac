"""The use cases: what can be asked of a model over any transport."""
