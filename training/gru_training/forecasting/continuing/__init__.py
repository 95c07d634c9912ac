"""A forecaster that goes on learning: its old rows and newer ones, and the networks it had."""
