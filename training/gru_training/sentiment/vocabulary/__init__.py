"""The words that a text classifier knows, and their vectors."""
