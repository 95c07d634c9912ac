"""The evaluation of a text classifier beside simple models: figures, pictures, the report."""
