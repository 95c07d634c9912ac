"""`python -m benchmarks.serving`: the server beside the bare model and other servers."""
