"""The way from text to word ids and vectors."""
