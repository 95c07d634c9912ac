"""The forecasting task: from a series to a run directory."""
