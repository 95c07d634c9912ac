"""What a text classifier achieved, beside simple models: figures, pictures, the report."""
