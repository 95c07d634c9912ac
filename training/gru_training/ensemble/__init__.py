"""Several runs averaged into one: `gru-train ensemble`. Knows no task."""
