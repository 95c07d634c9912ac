"""Files of rows and of series."""
