"""The network of a text classifier, and what it is made of."""
