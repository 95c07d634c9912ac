"""The process: listeners, TLS, tokens, budgets, start and stop."""
