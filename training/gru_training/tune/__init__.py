"""Searching for settings with Optuna: `gru-train tune`. Knows no task."""
