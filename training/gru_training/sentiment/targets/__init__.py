"""What a text is labelled with: one class, any number of labels, or a number to estimate."""
