"""Default settings against simple forecasters and other libraries, on sets that no preset knows."""
