"""A forecasting run at several origins in time."""
