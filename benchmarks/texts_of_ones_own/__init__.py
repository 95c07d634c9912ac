"""Default settings on texts that no preset knows, beside simple models."""
