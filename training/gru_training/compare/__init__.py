"""Runs side by side on the same test rows; knows no task."""
