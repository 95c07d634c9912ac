"""The run directory: write, read, lock, summarise."""
