"""TF Serving's messages under their own full names, in a descriptor pool of their own."""
