"""Training from Python on tables in memory, with the conventions of scikit-learn."""
