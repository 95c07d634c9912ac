"""One loaded version: sessions, signatures, warmup."""
