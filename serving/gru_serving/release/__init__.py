"""Releases of versions: golden requests, verification, labels."""
