"""The progress display of a training: a bar with loss and remaining time, and a line per epoch."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gru_training.loop.checkpoint import EpochRecord
from gru_training.loop.fit import EpochFollower


class TrainingProgress:
    """The display for `gru_training.loop.fit.fit`; the bar appears only in a terminal.

    Args:
        console: Console to write to.
        epochs: Largest number of epochs; the time left is for all of them.
        steps: Steps per epoch.
        metric: The validation mean to show beside the loss.
        style: Format of the metric, as in format().
        followers: Functions called after each epoch, behind the line about it.
    """

    def __init__(
        self,
        console: Console,
        epochs: int,
        steps: int,
        metric: str = "accuracy",
        style: str = ".1%",
        followers: Sequence[EpochFollower] = (),
    ):
        self._console, self._epochs, self._steps = console, epochs, steps
        self._followers = followers
        self._metric, self._style = metric, style
        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
            BarColumn(),
            TextColumn("{task.fields[doing]}"),
            TimeElapsedColumn(),
            TextColumn("left at most"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._best = "-"
        self._task = self._bar.add_task(
            "", total=epochs * steps, epoch=1, doing="tracing and compiling the first steps"
        )

    def __enter__(self) -> "TrainingProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, epoch: int, step: int, loss: float) -> None:
        """Move the progress bar."""
        done = (epoch - 1) * self._steps + step
        doing = f"loss {loss:.4f}  best val {self._metric} {self._best}"
        self._bar.update(self._task, completed=done, epoch=epoch, doing=doing)

    def epoch(self, record: EpochRecord, best: bool) -> None:
        """Write a line about the epoch, and call the followers."""
        value = format(record.validation[self._metric], self._style)
        self._best = value if best else self._best
        self._console.print(
            f"epoch {record.epoch:>{len(str(self._epochs))}}/{self._epochs}  "
            f"loss {record.train['loss']:.4f}  "
            f"val loss {record.validation['loss']:.4f}  val {self._metric} {value}  "
            f"{record.seconds:.1f} s{'  *' if best else ''}",
            soft_wrap=True,
        )
        for follow in self._followers:
            follow(record)
