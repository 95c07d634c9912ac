"""Load on a running server, and the results."""
