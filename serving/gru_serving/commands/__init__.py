"""The commands of `gru-serve`, one module each."""
