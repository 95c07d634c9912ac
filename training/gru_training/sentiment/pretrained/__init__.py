"""A classifier that begins with the words and the network of a language model."""
