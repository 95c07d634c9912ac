"""Inputs that are known of the future: what they add to a series."""
