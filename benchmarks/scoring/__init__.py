"""How fast the rows of a file are scored, beside the bare model."""
