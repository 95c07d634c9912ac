"""Forecasters to beat."""
