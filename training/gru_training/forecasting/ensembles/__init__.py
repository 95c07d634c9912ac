"""Averages of forecasters, and forecasters that are distilled from them."""
