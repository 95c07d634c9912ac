"""Rate at which the rows of a file are scored, compared with the bare model."""
