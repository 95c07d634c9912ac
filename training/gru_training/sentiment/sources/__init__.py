"""Where texts come from: known sets, the user's files, made-up reviews."""
