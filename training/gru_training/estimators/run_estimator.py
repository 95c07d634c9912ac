"""What the estimators have in common: settings, and the run that they stand for once fitted."""

import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from rich.console import Console
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from gru_training import quiet
from gru_training.config import RunConfig
from gru_training.errors import (
    InterruptedRun,
    InterruptedWork,
    RunDirectoryError,
    TrainingError,
)
from gru_training.estimators.settings import Settings
from gru_training.estimators.temporary import (
    remove_with,
    run_files,
    temporary_folder,
    written_run,
)
from gru_training.loop.checkpoint import existing_checkpoint, read_settings
from gru_training.runs.directory import TaskRun
from gru_training.runs.report import Report
from gru_training.runs.run_config import read_config
from gru_training.task import find_task
from gru_training.tune.config import TuneConfig
from gru_training.tune.run import conclude, search_space, tune

_EXPORTED = "exported "


class RunEstimator(BaseEstimator):
    """An estimator that trains a task's run, and uses it.

    A run is kept in `runs_dir`, or under `name` in `runs/`. Where neither is set, it lies in a
    temporary folder that is removed with the last estimator that uses it. A pickle of the estimator
    holds all files of its run.

    Attributes:
        run_: The run directory; only of a fitted estimator.
        study_: The folder of the search; only after a `tune` that keeps it.
    """

    _task: ClassVar[str]
    _settings: ClassVar[Settings]
    _shared: ClassVar[frozenset[str]]
    """Attributes beside the run that copies share, as nothing changes them, and pickles leave out:
    rows of the training, which belong to whoever gave them, and TensorFlow's graphs."""
    run_: Any
    _loaded: dict[str, Any]
    """What predictions have loaded of the run, by name; they change no attribute."""
    study_: Path
    runs_dir: Any
    name: Any

    @property
    def size_(self) -> int:
        """Bytes of the run's files, which a pickle of this estimator holds."""
        return sum(path.stat().st_size for path in self._run().path.iterdir() if path.is_file())

    def _set(self, given: dict[str, Any]) -> None:
        for name, value in self._settings.with_defaults(given, type(self).__name__).items():
            setattr(self, name, value)

    def set_params(self, **params: Any) -> Self:
        """Change settings; a preset is taken before the others.

        Raises:
            ConfigError: There is no such setting; names what is close.
        """
        if "preset" in params:
            self._set(params)
            return self
        self._settings.require_known(params, type(self).__name__)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    @classmethod
    def load(cls, run: str | os.PathLike[str]) -> Self:
        """Load a run directory, of `gru-train` or of another estimator.

        The estimator has the settings of the run but for `runs_dir` and `name`: what it learns
        later goes into a run of its own.

        Args:
            run: Path of the run directory, which must stay where it is.

        Raises:
            RunDirectoryError: There is no complete run of this task.
        """
        found = find_task(cls._task).open_run(Path(run))
        values = cls._settings.values(found.config)
        estimator = cls(**{**values, "runs_dir": None, "name": None})
        estimator._fitted(found)
        return estimator

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Copy the run directory to a place of your own.

        Args:
            path: Directory of the copy, which must be new; `load` and `gru_training.load_run`
                read it.

        Raises:
            RunDirectoryError: There is something already, or it cannot be written.
        """
        target = Path(path)
        run = self._run()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as aside:
                copy = shutil.copytree(run.path, Path(aside) / "run")
                if os.path.lexists(target):
                    raise RunDirectoryError(f"{target} exists already; choose another path")
                copy.rename(target)
        except OSError as error:
            raise RunDirectoryError(f"cannot write {target}: {error.strerror or error}") from error
        return target

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the next version of a served model, as `gru-serve export` does.

        That command is what runs here, in a process of its own: `gru_training` knows nothing of
        serving, and the version is made as anyone can make it again.

        Args:
            path: Base path of the served model, as `models/tickets`.

        Returns:
            The directory of the new version, a SavedModel.

        Raises:
            TrainingError: The command says why it failed.
        """
        command = [sys.executable, "-m", "gru_serving", "export", str(self._run().path)]
        done = subprocess.run(
            [*command, "--to", os.fspath(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise TrainingError(done.stderr.strip() or f"{' '.join(command)} failed")
        line = next(line for line in done.stdout.split("\n") if line.startswith(_EXPORTED))
        return Path(line.removeprefix(_EXPORTED).rpartition(", ")[0])

    def _search(
        self,
        config: Any,
        data: Any,
        search: TuneConfig,
        progress: bool | None,
    ) -> None:
        """Search for settings and take over those that it ends with.

        Args:
            config: Settings to begin with; those that are not the defaults stay as they are.
            data: As the task's `check` reads them.
            search: What to search, and how long.
            progress: Show how it goes; None: to a person only.
        """
        if search.study is not None or self._kept_in is not None:
            folder = search.study or config.run.runs_dir / f"tune-{self._task}"
            self._search_in(folder, config, data, search, progress)
            self.study_ = folder
            return
        aside = temporary_folder()
        try:
            config = replace(config, run=replace(config.run, runs_dir=aside))
            self._search_in(aside / f"tune-{self._task}", config, data, search, progress)
        except InterruptedWork as error:  # there is nothing to go on from
            raise KeyboardInterrupt from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _search_in(
        self, folder: Path, config: Any, data: Any, search: TuneConfig, progress: bool | None
    ) -> None:
        console = progress_console(progress)
        values, defaults = (
            self._settings.values(each) for each in (config, self._settings.config_type())
        )
        fixed = [name for name, value in values.items() if value != defaults[name]]
        space = search_space(search, config, fixed)
        study = tune(search, space, data, folder, console)
        from gru_training.tune.pick import pick

        picked = pick(study, space.defaults())
        if picked is not None:
            conclude(space, study, picked, folder, (), "", console)
            self.set_params(**picked.trial.settings)

    def report(self) -> Report:
        """The run's report: print it, read its `path`, or let a notebook show it."""
        return Report(self._run().path / "report.md", self._run())

    def _run(self) -> Any:
        """The run; raises NotFittedError where there is none."""
        if not hasattr(self, "run_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit, or use load or resume"
            )
        return self.run_

    def _fitted(self, run: TaskRun) -> None:
        """Remember the run and what follows from it."""
        self.run_ = run
        self._loaded = {}

    @property
    def _kept_in(self) -> Path | None:
        """The folder that runs are kept in; None: they lie in temporary folders."""
        if self.runs_dir is None and self.name is None:
            return None
        return RunConfig().runs_dir if self.runs_dir is None else Path(self.runs_dir)

    def _run_of(self, config: Any, train: Callable[[Any], TaskRun | None]) -> TaskRun:
        """Train, in a temporary folder unless the run is to be kept.

        Args:
            config: Settings of the training.
            train: From the settings to a run.

        Raises:
            TrainingError: Settings, data or folder cannot be used; nothing is left behind.
        """
        if self._kept_in is not None:
            run = train(config)
        else:
            folder = temporary_folder()
            place = replace(config.run, runs_dir=folder)
            if place.track in ("tensorboard", "wandb") and place.track_to is None:
                tracked = RunConfig().runs_dir  # what a tracker writes is to stay
                if place.track == "tensorboard":
                    tracked /= "tensorboard"
                place = replace(place, track_to=str(tracked))
            try:
                run = train(replace(config, run=place))
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(error, InterruptedRun):  # there is nothing to go on from
                    raise KeyboardInterrupt from error
                raise
            if run is None:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                remove_with(run, folder)
        if run is None:
            raise TrainingError("this process of several wrote no run; the first one has it")
        return run

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if name != "run_" and name not in self._shared:
                setattr(twin, name, copy.deepcopy(value, memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in super().__getstate__().items() if k not in self._shared}
        run = state.pop("run_", None)
        if run is not None:
            state["_run_files"] = run.path.name, run_files(run)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        settings = {name: value for name, value in state.items() if name != "_run_files"}
        super().__setstate__(settings)
        if "_run_files" in state:
            path = written_run(*state["_run_files"])
            try:
                run = find_task(self._task).open_run(path)
                self._fitted(run)
            except BaseException:
                shutil.rmtree(path.parent, ignore_errors=True)
                raise
            remove_with(run, path.parent)

    def _finish(self, run: TaskRun, console: Console) -> Self:
        """Take over a run that has just been trained, and say how it went."""
        self._fitted(run)
        if run.metrics["interrupted"]:
            console.print(
                f"interrupted; epoch {run.metrics['best_epoch']}, the best so far, is kept",
                highlight=False,
            )
        if self._kept_in is not None:
            console.print(f"run {run.path}", markup=False, highlight=False)
        return self


def begun(path: str | os.PathLike[str], task: str, config_type: type) -> tuple[Any, Any]:
    """The settings of a run that was cut short, and what is known of data given in memory.

    Raises:
        TrainingError: There is no checkpoint of a run of this task.
    """
    run = Path(path)
    checkpoint = existing_checkpoint(run)
    written = read_settings(checkpoint)
    config = read_config(written, {task: config_type}, checkpoint)
    place = replace(config.run, runs_dir=run.parent, name=run.name)
    return replace(config, run=place), written.get("given")


@cache
def load_tensorflow() -> None:
    """Load it, which takes seconds, without its messages."""
    quiet.load_tensorflow()


def progress_console(progress: bool | None) -> Console:
    """Where a training shows how it goes.

    Args:
        progress: Whether it does; None: only to a person, in a terminal or a notebook.
    """
    console = Console(soft_wrap=True)
    shown = console.is_terminal or console.is_jupyter if progress is None else progress
    return console if shown else Console(quiet=True)


def tuning(
    task: str,
    minutes: float | None,
    trials: int | None,
    vary: Sequence[str],
    study: str | os.PathLike[str] | None,
) -> TuneConfig:
    """The settings of a search.

    Raises:
        ConfigError: One is out of range.
    """
    folder = None if study is None else Path(study)
    return TuneConfig(task, minutes=minutes, trials=trials, vary=tuple(vary), study=folder)
