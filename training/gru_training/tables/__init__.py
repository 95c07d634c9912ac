"""Files of rows, read and written piece by piece: CSV, TSV, JSON lines and Parquet."""
