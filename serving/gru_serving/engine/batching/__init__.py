"""Merging the runs of concurrent callers."""
