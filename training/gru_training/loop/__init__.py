"""The training loop, which knows no task: steps, batches, checkpoints, schedules, progress."""
