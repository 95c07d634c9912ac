"""The server process: listeners, TLS, tokens, budgets, start and stop."""
