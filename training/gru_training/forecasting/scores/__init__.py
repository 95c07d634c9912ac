"""How good forecasts are: errors, intervals, and what is stored of them."""
