"""Searching for settings with Optuna: `gru-train tune`, independent of tasks."""
