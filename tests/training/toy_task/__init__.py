"""A minimal task: which tokens of a made-up sequence are lower than the one before."""
