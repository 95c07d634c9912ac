"""A forecasting run for people: the report and its pictures."""
