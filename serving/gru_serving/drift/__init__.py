"""The comparison of a model's requests and answers with its training data."""
