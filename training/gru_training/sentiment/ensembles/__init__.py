"""Averages of text classifiers, and networks that are distilled from them."""
