"""Runs a search: starts processes that run trials, and shows their results."""

import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from optuna.trial import TrialState
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gru_training.criterion import Criterion
from gru_training.errors import TrainingError
from gru_training.search_ranges import written
from gru_training.tune.study import Study, Trial
from gru_training.tune.worker import Job, worker_name

_TRIALS_OF_PROCESS = 8
"""Trials after which a process is replaced, as TensorFlow keeps what it compiled in memory."""
_POLL_SECONDS = 0.7
_MOST_CRASHES = 3
"""Maximum number of processes that break down in a row."""
_SHOWN_OF_ERROR = 2000


def search(
    job: Job, seconds: float | None, trials: int | None, parallel: int, console: Console
) -> Study:
    """Run trials until the time is over or there were enough of them.

    Args:
        job: Settings to try, and how to judge them.
        seconds: Time for the search; None for no limit. The first trial of a study is finished in
            any case.
        trials: Maximum number of trials; None for no limit.
        parallel: Number of processes at the same time.
        console: Console that shows progress.

    Raises:
        TrainingError: The first settings cannot be trained with, or processes break down.
        KeyboardInterrupt: The user interrupted the search; the study can continue.
    """
    study = job.open_study()
    known = {each.number for each in study.trials() if each.state != "running"}
    begun = time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    shown = bar.add_task("searching", total=seconds)

    def show(trials: Sequence[Trial], best: Trial | None) -> None:
        for trial in trials:
            if trial.state != "running" and trial.number not in known:
                known.add(trial.number)
                line = _line(trial, trial is best, study.criterion)
                console.print(line, markup=False, highlight=False)
        found = "-" if best is None else format(best.value, study.criterion.style)
        description = f"{len(known)} trials, best {study.criterion.name} {found}"
        bar.update(shown, description=description, completed=time.monotonic() - begun)

    with tempfile.TemporaryDirectory(prefix="gru-train-tune-") as scratch:
        workers = _Workers(Path(scratch), study)
        workers.job.write_bytes(pickle.dumps(job))
        with bar, workers.ended_on_error():
            left = trials
            while True:
                ended = workers.ended()
                now = study.trials()  # after that: what has ended writes no more
                best = study.best(now)
                in_time = seconds is None or time.monotonic() < begun + seconds
                if best is not None and not in_time:
                    break
                unused = workers.collect(ended, now, best)
                left = None if left is None else left + unused
                while left != 0 and len(workers.running) < parallel:
                    count = _TRIALS_OF_PROCESS
                    if left is not None:
                        count = min(count, max(1, left // parallel))
                        left -= count
                    workers.start(count)
                show(now, best)
                if not workers.running:
                    break
                time.sleep(_POLL_SECONDS)
            workers.end(TrialState.PRUNED, "the time was over", again=False)
            now = study.trials()
            show(now, study.best(now))
    return study


def _line(trial: Trial, best: bool, criterion: Criterion) -> str:
    value = "-" if trial.value is None else format(trial.value, criterion.style)
    seconds = "" if trial.seconds is None else f"{trial.seconds:.0f} s"
    settings = " ".join(f"{name}={written(value)}" for name, value in trial.settings.items())
    reason = f"  ({trial.state}: {trial.reason})" if trial.reason else ""
    mark = " *" if best else "  "
    return f"trial {trial.number:>3}  {value:>7}{mark}  {seconds:>6}  {settings}{reason}"


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

    folder: Path
    study: Study
    running: list[_Worker] = field(default_factory=list)
    _started: int = 0
    _crashes: int = 0

    @property
    def job(self) -> Path:
        """The file that tells them what to do."""
        return self.folder / "job.pickle"

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
        """Return those of the running processes that have ended."""
        return [each for each in self.running if each.process.poll() is not None]

    def collect(self, ended: Sequence[_Worker], trials: Sequence[Trial], best: Trial | None) -> int:
        """Remove processes that have ended; return how many trials they left undone.

        Args:
            ended: Processes that have ended.
            trials: Trials of the study, read after that.
            best: Best of these trials.

        Raises:
            TrainingError: Processes break down again and again, or the first settings do not work.
        """
        own = {worker.name for worker in self.running}
        for trial in trials:
            if best is None and trial.state == "failed" and trial.worker in own:
                raise TrainingError(trial.reason or f"trial {trial.number} failed")
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
        """End all processes, and give their trials a state and its reason."""
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
