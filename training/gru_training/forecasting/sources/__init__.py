"""Where series come from, and whether they can be trained on."""
