"""The training loop of all tasks: steps, batches, checkpoints, schedules, progress."""
