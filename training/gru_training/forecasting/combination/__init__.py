"""The forecast that is delivered: a weighted mean of networks and of simple forecasters."""
