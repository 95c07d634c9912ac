"""Carries out a search: starts processes that run trials, and shows what comes of them."""

import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.trial import TrialState
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gru_training.errors import TrainingError
from gru_training.search_ranges import written
from gru_training.tune.study import Study, Trial
from gru_training.tune.worker import Job, worker_name

_TRIALS_OF_PROCESS = 8
"""After so many a process is replaced, for what TensorFlow keeps in memory."""
_POLL_SECONDS = 0.7
_MOST_CRASHES = 3
"""Processes that may break down in a row."""
_SHOWN_OF_ERROR = 2000


def search(
    job: Job, seconds: float | None, trials: int | None, parallel: int, console: Console
) -> Study:
    """Run trials until the time is over or there were enough of them.

    Args:
        job: What to try.
        seconds: Time; None for no limit. The first trial of a study is finished in any case.
        trials: Most trials; None for no limit.
        parallel: Processes at the same time.
        console: Where to show progress.

    Returns:
        The study.

    Raises:
        TrainingError: The first settings cannot be trained with, or processes break down.
        KeyboardInterrupt: By the user; the study can go on.
    """
    study = job.open_study()
    with tempfile.TemporaryDirectory(prefix="gru-train-tune-") as scratch:
        told = Path(scratch) / "job.pickle"
        told.write_bytes(pickle.dumps(job))
        workers = _Workers(told, Path(scratch), study)
        shown = _Shown(study, console, seconds)
        with shown, workers.ended_on_error():
            end = None if seconds is None else time.monotonic() + seconds
            left = trials
            while True:
                ended = workers.ended()
                trials_now = study.trials()  # after that: what has ended writes no more
                best = study.best(trials_now)
                if best is not None and end is not None and time.monotonic() >= end:
                    break
                unused = workers.collect(ended, trials_now, best)
                left = None if left is None else left + unused
                while left != 0 and len(workers.running) < parallel:
                    count = _share(left, parallel)
                    workers.start(count)
                    left = None if left is None else left - count
                shown.update(trials_now, best)
                if not workers.running:
                    break
                time.sleep(_POLL_SECONDS)
            workers.end(TrialState.PRUNED, "the time was over", again=False)
            trials_now = study.trials()
            shown.update(trials_now, study.best(trials_now))
    return study


def _share(left: int | None, parallel: int) -> int:
    """How many trials the next process is to run."""
    if left is None:
        return _TRIALS_OF_PROCESS
    return min(_TRIALS_OF_PROCESS, max(1, left // parallel))


@dataclass
class _Worker:
    process: "subprocess.Popen[bytes]"
    count: int
    log: Path

    @property
    def name(self) -> str:
        return worker_name(self.process.pid)


@dataclass
class _Workers:
    """The processes that run trials."""

    job: Path
    folder: Path
    study: Study
    running: list[_Worker] = field(default_factory=list)
    _started: int = 0
    _crashes: int = 0

    def start(self, count: int) -> None:
        """Start a process that runs so many trials."""
        self._started += 1
        log = self.folder / f"worker-{self._started}.log"
        command = [sys.executable, "-m", "gru_training.tune.worker", str(self.job), str(count)]
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the search, which ends them
            )
        self.running.append(_Worker(process, count, log))

    def ended(self) -> list[_Worker]:
        """Those of the running processes that run no more."""
        return [each for each in self.running if each.process.poll() is not None]

    def collect(self, ended: Sequence[_Worker], trials: Sequence[Trial], best: Trial | None) -> int:
        """Take note of processes that have ended; return how many trials they have left undone.

        Args:
            ended: The processes.
            trials: Of the study, read after they ended.
            best: Of these.

        Raises:
            TrainingError: They break down again and again, or the first settings do not work.
        """
        if best is None:
            self._refuse_bad_settings(trials)
        undone = 0
        for worker in ended:
            self.running.remove(worker)
            undone += worker.count - sum(each.worker == worker.name for each in trials)
            status = worker.process.returncode
            if not status:
                self._crashes = 0
                continue
            self._crashes += 1
            reason = f"its process ended with status {status}"
            self.study.release((worker.name,), TrialState.FAIL, reason, again=False)
            if self._crashes >= _MOST_CRASHES or best is None:
                said = worker.log.read_text("utf-8", "replace").strip()[-_SHOWN_OF_ERROR:]
                raise TrainingError(f"a process of the search ended with status {status}:\n{said}")
        return undone

    def end(self, state: TrialState, reason: str, again: bool) -> None:
        """End all processes and say what has become of their trials."""
        for worker in self.running:
            worker.process.terminate()
        for worker in self.running:
            try:
                worker.process.wait(5)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        names = [worker.name for worker in self.running]
        self.running.clear()
        self.study.release(names, state, reason, again)

    @contextmanager
    def ended_on_error(self) -> Iterator[None]:
        """End all processes where the search is interrupted; their settings are tried again."""
        try:
            yield
        except BaseException:
            self.end(TrialState.FAIL, "interrupted", again=True)
            raise

    def _refuse_bad_settings(self, trials: Sequence[Trial]) -> None:
        """Raise the error of a failed trial of these processes."""
        own = {worker.name for worker in self.running}
        for trial in trials:
            if trial.state == "failed" and trial.worker in own:
                raise TrainingError(trial.reason or f"trial {trial.number} failed")


class _Shown:
    """A line for each trial that has ended, and in a terminal a bar with the time left."""

    def __init__(self, study: Study, console: Console, seconds: float | None):
        self._criterion, self._console = study.criterion, console
        self._known = {each.number for each in study.trials() if each.state != "running"}
        self._style = study.criterion.style
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._begun, self._seconds = time.monotonic(), seconds
        self._task = self._bar.add_task("searching", total=seconds)

    def __enter__(self) -> "_Shown":
        self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.stop()

    def update(self, trials: Sequence[Trial], best: Trial | None) -> None:
        """Show what is new among the trials, of which one is the best."""
        for trial in trials:
            if trial.state != "running" and trial.number not in self._known:
                self._known.add(trial.number)
                self._console.print(
                    self._line(trial, best is not None and best.number == trial.number),
                    markup=False,
                    highlight=False,
                )
        found = "-" if best is None or best.value is None else format(best.value, self._style)
        description = f"{len(self._known)} trials, best {self._criterion.name} {found}"
        self._bar.update(
            self._task, description=description, completed=time.monotonic() - self._begun
        )

    def _line(self, trial: Trial, best: bool) -> str:
        value = "-" if trial.value is None else format(trial.value, self._style)
        seconds = "" if trial.seconds is None else f"{trial.seconds:.0f} s"
        settings = " ".join(f"{name}={written(value)}" for name, value in trial.settings.items())
        reason = f"  ({trial.state}: {trial.reason})" if trial.reason else ""
        return (
            f"trial {trial.number:>3}  {value:>7}{' *' if best else '  '}  {seconds:>6}  "
            f"{settings}{reason}"
        )
