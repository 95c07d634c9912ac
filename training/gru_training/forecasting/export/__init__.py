"""The export of a forecaster."""
