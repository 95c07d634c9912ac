"""A text classifier that goes on learning: its old rows and new ones, and the network it had."""
