"""The network of a language model: embedding, stacked GRUs, tied softmax; and its training."""
