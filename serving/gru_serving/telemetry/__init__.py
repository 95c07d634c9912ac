"""Metrics, the access log and the prediction log."""
