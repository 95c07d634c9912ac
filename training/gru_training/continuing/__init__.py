"""Learning on: what a run goes on from, and the run it came from beside it; knows no task."""
