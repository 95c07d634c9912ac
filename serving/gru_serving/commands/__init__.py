"""One module per `gru-serve` command: parse, build, call one function."""
