"""Files of public data sets, as they are published."""
