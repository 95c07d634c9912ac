"""TF Serving's messages under their full names, in a separate descriptor pool."""
