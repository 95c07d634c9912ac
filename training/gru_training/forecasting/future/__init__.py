"""What follows a series: from where a forecast begins, the forecast, and its command."""
