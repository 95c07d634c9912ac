"""Trainings that end right after their first checkpoint."""

import signal
from contextlib import contextmanager

import pytest

from gru_training.loop.checkpoint import Checkpoint


@contextmanager
def cut_short(end):
    """Call a function after each checkpoint that is written."""
    save = Checkpoint.save

    def save_and_end(*arguments):
        save(*arguments)
        end()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_end)
        yield


def terminated():
    """End trainings by SIGTERM."""
    return cut_short(lambda: signal.raise_signal(signal.SIGTERM))


@contextmanager
def killed():
    """End a training by an error that nothing handles."""

    def fail():
        raise MemoryError

    with cut_short(fail), pytest.raises(MemoryError):
        yield
