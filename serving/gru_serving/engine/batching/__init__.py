"""Batching: the runs of concurrent callers are merged."""
