"""JSON exactly as TF Serving's RapidJSON reads and writes it: texts, offsets, layout."""
