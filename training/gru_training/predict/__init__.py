"""Scoring rows with a run of any task: `gru-train predict`, and inside other engines."""
