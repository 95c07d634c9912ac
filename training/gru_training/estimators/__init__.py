"""Training from Python, on tables in memory, with the habits of scikit-learn."""
