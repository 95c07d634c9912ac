"""Versions on disk: scan, digests, publish."""
