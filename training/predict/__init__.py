"""Runs of any task that answer rows: `gru-train predict`, and in engines of others."""
