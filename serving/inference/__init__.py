"""The use cases: what can be asked of a model, whatever carries the question. No transport."""
