"""What is exported of a language model, and what answers the rows of tables."""
