"""The forecasting networks."""
