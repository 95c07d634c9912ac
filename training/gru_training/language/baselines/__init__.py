"""Simple language models beside the GRU."""
