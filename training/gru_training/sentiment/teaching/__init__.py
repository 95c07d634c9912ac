"""Learning what a trained classifier answers to texts without labels: self-training."""
