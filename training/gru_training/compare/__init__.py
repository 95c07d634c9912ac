"""Comparison of runs on the same test rows, the same for all tasks."""
