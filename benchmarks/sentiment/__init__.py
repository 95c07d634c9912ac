"""`python -m benchmarks.sentiment`: the sentiment table."""
