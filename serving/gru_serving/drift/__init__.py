"""Whether what a model is asked, and what it answers, is still what its training data were."""
