"""A task as small as one can be: which tokens of a made-up sequence are lower than the last."""
