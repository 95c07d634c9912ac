"""The execution of a search: Optuna proposes settings, and processes train with them."""

import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gru_training.criterion import Criterion, Judged
from gru_training.errors import TrainingError
from gru_training.search_ranges import written
from gru_training.tune.search_space import SearchSpace
from gru_training.tune.study import LEFT_OUT, REASON, STATES, complete_trials

_TRIALS_OF_PROCESS = 8
"""Number of trials after which a process is replaced, since TensorFlow keeps compiled programs in
memory.
"""
_POLL_SECONDS = 0.5
_MOST_CRASHES = 3
"""Maximum number of consecutive processes that crash."""
_SHOWN_OF_ERROR = 2000
_TIME_OVER, _INTERRUPTED = "the time was over", "interrupted"


class CrashError(TrainingError):
    """A process of the search ended in the middle of a trial."""


class TrialProcess:
    """A process that runs trials one after the other (`gru_training.tune.worker`).

    Args:
        work: Name of the task, data from `Task.read`, and criterion of the search.
    """

    def __init__(self, work: tuple[str, Any, Criterion]):
        self._work, self._left = work, 0
        self._process: Any = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  of each process in turn

    def try_settings(self, settings: Any, goes_on: Callable[[int, float], bool]) -> Judged | None:
        """Train with these settings.

        Args:
            settings: Settings of the task.
            goes_on: Function called with each epoch and its criterion, which returns whether the
                trial goes on.

        Returns:
            The criterion; None if the trial was stopped.

        Raises:
            TrainingError: These settings cannot be used.
            CrashError: The process ended.
        """
        new = not self._left
        if new:
            self._start()
        self._left -= 1
        try:
            if new:
                self._send(self._work)
            self._send(settings)
            while True:
                answer = pickle.load(self._process.stdout)
                if isinstance(answer, TrainingError):
                    raise answer
                if answer is None or isinstance(answer, Judged):
                    return answer
                self._send(goes_on(*answer))
        except (EOFError, OSError, pickle.UnpicklingError):
            status = self._process.wait()
            self._left = 0
            self._log.seek(0)
            said = self._log.read().decode("utf-8", "replace").strip()[-_SHOWN_OF_ERROR:]
            raise CrashError(
                f"a process of the search ended with status {status}:\n{said}"
            ) from None

    def kill(self) -> None:
        """End the process in the middle of its trial, if there is one."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the idle process."""
        self._end()
        self._log.close()

    def _end(self) -> None:
        if self._process is not None:
            self._process.communicate()

    def _start(self) -> None:
        self._end()
        self._log.seek(0)
        self._log.truncate()
        self._left = _TRIALS_OF_PROCESS
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gru_training.tune.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for the search, which ends them
        )

    def _send(self, content: Any) -> None:
        pickle.dump(content, self._process.stdin)
        self._process.stdin.flush()


class Search:
    """The trials of one command, in some processes at the same time.

    Args:
        study: Study to add them to.
        space: Settings to choose among.
        work: Name of the task, data from `Task.read`, and criterion of the search.
        console: Console that shows progress.
    """

    def __init__(
        self,
        study: optuna.Study,
        space: SearchSpace,
        work: tuple[str, Any, Criterion],
        console: Console,
    ):
        self._study, self._space, self._work, self._console = study, space, work, console
        self._idle = SimpleQueue[TrialProcess]()
        self._crashes = self._shown = 0
        self._ended = ""
        self._failure: TrainingError | None = None

    def run(self, seconds: float | None, trials: int | None, parallel: int) -> None:
        """Run trials until the time is over or there are enough of them.

        Args:
            seconds: Time for the search; None for no limit. The first trial of a study is finished
                in any case.
            trials: Maximum number of trials; None for no limit.
            parallel: Number of processes at the same time.

        Raises:
            TrainingError: The first settings cannot be trained with, or processes break down.
            KeyboardInterrupt: The user interrupted the search; the study can continue.
        """
        processes = [TrialProcess(self._work) for _ in range(parallel)]
        for each in processes:
            self._idle.put(each)
        begun = time.monotonic()
        bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
            console=self._console, transient=True, disable=not self._console.is_terminal,
        )  # fmt: skip
        shown = bar.add_task("searching", total=seconds)
        with ThreadPoolExecutor(1) as thread, bar:
            optimizing = thread.submit(
                self._study.optimize, self._try, trials, None, parallel, (TrainingError,),
                [self._show],
            )  # fmt: skip
            try:
                while not optimizing.done() and not self._failure:
                    taken = time.monotonic() - begun
                    if seconds is not None and taken > seconds and complete_trials(self._study):
                        self._ended = _TIME_OVER
                        break
                    bar.update(shown, description=self._progress(), completed=taken)
                    wait([optimizing], _POLL_SECONDS)
            finally:
                self._ended = self._ended or _INTERRUPTED
                while not optimizing.done():  # a process may have been about to start
                    for each in processes:
                        each.kill()
                    wait([optimizing], _POLL_SECONDS)
                for each in processes:
                    each.close()
        if self._failure:
            raise self._failure
        optimizing.result()

    def _try(self, trial: optuna.Trial) -> float:
        """Train with the settings of a trial; the objective of the study."""
        chosen = {name: choice.suggest(trial, name) for name, choice in self._space.choices.items()}

        def goes_on(epoch: int, value: float) -> bool:
            trial.report(value, epoch)
            if stops := trial.should_prune():
                trial.set_user_attr(REASON, f"worse than others after epoch {epoch}")
            return not stops

        process = self._idle.get()
        try:
            found = process.try_settings(self._space.with_values(chosen), goes_on)
        except TrainingError as error:
            self._note_failure(trial, error)
            raise
        finally:
            self._idle.put(process)
        self._crashes = 0
        if found is None:
            raise optuna.TrialPruned
        trial.set_user_attr(LEFT_OUT, found.left_out)
        return found.value

    def _note_failure(self, trial: optuna.Trial, error: TrainingError) -> None:
        """Record why a trial failed, and stop the search if others would fail as well."""
        crashed = isinstance(error, CrashError)
        ended = self._ended if crashed else ""
        trial.set_user_attr(REASON, ended or str(error).partition(":\n")[0])
        if ended:
            self._study.stop()
            if ended == _TIME_OVER:
                raise optuna.TrialPruned from error
            self._study.enqueue_trial(trial.params)
            return
        self._crashes = self._crashes + 1 if crashed else 0
        if self._crashes == _MOST_CRASHES or not complete_trials(self._study):
            self._failure = error
            self._study.stop()

    def _show(self, _: optuna.Study, trial: FrozenTrial) -> None:
        """Print the line of a finished trial."""
        self._shown += 1
        style, best = self._work[2].style, complete_trials(self._study)
        mark = "*" if best and best[0].number == trial.number else " "
        value = "-" if trial.value is None else format(trial.value, style)
        seconds = f"{trial.duration.total_seconds():.0f} s" if trial.duration else ""
        settings = " ".join(f"{name}={written(value)}" for name, value in trial.params.items())
        reason = trial.user_attrs.get(REASON, "")
        self._console.print(
            f"trial {trial.number:>3}  {value:>7} {mark}  {seconds:>6}  {settings}"
            + (f"  ({STATES[trial.state]}: {reason})" if reason else "")
        )

    def _progress(self) -> str:
        best, criterion = complete_trials(self._study), self._work[2]
        found = format(best[0].value, criterion.style) if best else "-"
        return f"{self._shown} trials, best {criterion.name} {found}"
