"""A forecaster as an export needs it."""
