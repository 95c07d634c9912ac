"""Several processes that answer requests behind one address, as one server. See ARCHITECTURE.md."""
