"""The common base of all estimators: settings, searches and the run of a fitted estimator.

A run that is not to be kept is written to a temporary folder, which is removed with the last
reference to it.
"""

import base64
import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, ClassVar, Self

from rich.console import Console
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from gru_training import quiet
from gru_training.config import RunConfig
from gru_training.errors import (
    DataError,
    InterruptedRun,
    InterruptedWork,
    RunDirectoryError,
    TrainingError,
)
from gru_training.estimators.settings import Settings
from gru_training.runs.directory import RunDirectory, TaskRun, free_name
from gru_training.task import find_task, interrupted_training, read_data
from gru_training.tune.command import TuneConfig, conclude, tune

_EXPORT_LINE_START = "exported "
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([\w.-]+\.png)\)")


@cache
def load_tensorflow() -> None:
    """Load TensorFlow, which takes seconds, without its messages."""
    quiet.load_tensorflow()


def _progress_console(progress: bool | None) -> Console:
    """Make the console of a training; None shows progress in a terminal or a notebook only."""
    console = Console(soft_wrap=True, markup=False, highlight=False)
    shown = console.is_terminal or console.is_jupyter if progress is None else progress
    return console if shown else Console(quiet=True)


@dataclass(frozen=True)
class Report:
    """A run's `report.md`: as a string its Markdown, in a notebook the page with its pictures."""

    path: Path
    """Path of the file; the pictures are beside it."""
    run: RunDirectory | None = field(default=None, repr=False, compare=False)
    """The run, whose folder may be temporary and exists as long as this object."""

    def __str__(self) -> str:
        return self.path.read_text("utf-8")

    def _repr_markdown_(self) -> str:
        """Return the page with embedded pictures, since a notebook is in another folder."""
        return _PICTURE.sub(self._embedded, str(self))

    def _embedded(self, link: re.Match[str]) -> str:
        picture = self.path.parent / link[2]
        if not picture.is_file():
            return link[0]
        data = base64.b64encode(picture.read_bytes()).decode()
        return f"![{link[1]}](data:image/png;base64,{data})"


class RunEstimator(BaseEstimator):
    """An estimator that trains a run of a task and uses it.

    A run is kept in `runs_dir`, or under `name` in `runs/`, with a number if a run of this name
    exists already, for instance after a fit of the same estimator or its clone. If neither is set,
    it is written to a temporary folder, which is removed with the last estimator that uses it. A
    pickle of the estimator contains all files of its run. The report of a run without a name is
    written when it is requested.

    Attributes:
        run_: The run directory; only of a fitted estimator.
        study_: The folder of the search; only after a `tune` that keeps it.
    """

    _task: ClassVar[str]
    _settings: ClassVar[Settings]
    _shared: ClassVar[frozenset[str]]
    """Attributes besides the run that copies share, since nothing changes them, and that pickles
    leave out: rows of the training, which belong to the caller, and TensorFlow's graphs.
    """
    run_: Any
    _loaded: dict[str, Any]
    """Objects that predictions have loaded from the run, by name; they change no attribute."""
    study_: Path
    runs_dir: Any
    name: Any

    @property
    def size_(self) -> int:
        """The bytes of the run's files, which a pickle of this estimator contains."""
        return sum(map(len, _run_files(self._run()).values()))

    def _set(self, given: dict[str, Any]) -> None:
        for name, value in self._settings.with_defaults(given, type(self).__name__).items():
            setattr(self, name, value)

    def set_params(self, **params: Any) -> Self:
        """Change settings; a preset is applied before the others.

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

        The estimator has the settings of the run except `runs_dir` and `name`: a later fit writes a
        run of its own.

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

    @classmethod
    def _interrupted(cls, path: str | os.PathLike[str], data: Any) -> tuple[Any, Any]:
        """Return the settings of a training to continue, and the record of its data in memory."""
        _, config, given = interrupted_training(Path(path), [cls._task])
        if given is not None and data is None:
            raise DataError(f"{path} was begun with data given in memory; give them again")
        if given is None and data is not None:
            raise DataError(f"{path} reads its data from {config.data.data}; leave `data` out")
        return config, given

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Copy the run directory to another place.

        Args:
            path: Directory of the copy, which must be new; `load` and `gru_training.load_run`
                read it.

        Raises:
            RunDirectoryError: There is something already, or it cannot be written.
        """
        target = Path(path)
        run = self._run()
        run.write_report()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as aside:
                copy = shutil.copytree(run.path, Path(aside) / "run")
                self._write_state(copy)
                if os.path.lexists(target):
                    raise RunDirectoryError(f"{target} exists already; choose another path")
                copy.rename(target)
        except OSError as error:
            raise RunDirectoryError(f"cannot write {target}: {error.strerror or error}") from error
        return target

    def _write_state(self, copy: Path) -> None:
        """Write into a copy of the run what the estimator has learned since; nothing by default."""

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the next version of a served model, as `gru-serve export` does.

        The command itself runs in a separate process, since `gru_training` does not depend on
        serving, and the version can be made again by the same command.

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
        line = next(line for line in done.stdout.split("\n") if line.startswith(_EXPORT_LINE_START))
        return Path(line.removeprefix(_EXPORT_LINE_START).rpartition(", ")[0])

    def _search(
        self,
        config: Any,
        data: Any,
        search: TuneConfig,
        progress: bool | None,
    ) -> None:
        """Search for settings other than those that are not the defaults, and apply the result."""
        if search.study is not None or self._kept_in is not None:
            folder = search.study or config.run.runs_dir / f"tune-{self._task}"
            self._search_in(folder, config, data, search, progress)
            self.study_ = folder
            return
        aside = _temporary_folder()
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
        console = _progress_console(progress)
        values, defaults = (
            self._settings.values(each) for each in (config, self._settings.config_type())
        )
        fixed = [name for name, value in values.items() if value != defaults[name]]
        found = tune(search, config, fixed, data, folder, console)
        conclude(found, console)
        self.set_params(**found.trial.params)

    def report(self) -> Report:
        """Return the run's report: print it, read its `path`, or let a notebook show it.

        It is written on this call, unless the run has a `name`, a tracker, or was written by
        `gru-train`.

        Raises:
            RunDirectoryError: The run was trained in another process, and its report not asked for.
        """
        run = self._run()
        run.write_report()
        path = run.path / "report.md"
        if not path.is_file():
            raise RunDirectoryError(
                f"{run.path} has no report: call report() of the estimator that is fitted, or give "
                "the run a name"
            )
        return Report(path, run)

    def _run(self) -> Any:
        """Return the run."""
        if not hasattr(self, "run_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit, or use load or resume"
            )
        return self.run_

    def _fitted(self, run: TaskRun) -> None:
        """Store the run and the attributes that follow from it."""
        self.run_ = run
        self._loaded = {}

    @property
    def _kept_in(self) -> Path | None:
        """The folder in which runs are kept; None for temporary folders."""
        if self.runs_dir is None and self.name is None:
            return None
        return RunConfig().runs_dir if self.runs_dir is None else Path(self.runs_dir)

    def _train(
        self,
        config: Any,
        progress: bool | None,
        resume: bool = False,
        data: Any = None,
        given: Mapping[str, Any] | None = None,
    ) -> Self:
        """Train and store the run, in a temporary folder unless it is to be kept.

        `data` are those given in memory, as the task reads them, and `given` their record in
        `config.json`. If it fails, nothing is left behind.
        """
        console = _progress_console(progress)
        config.run.require_tracker()
        if data is None:
            data = read_data(find_task(self._task), config, console)
        else:
            for note in data.notes:
                console.print(f"note: {note}", style="yellow")
        load_tensorflow()
        train = self._training()
        kept = self._kept_in is not None
        later = self.name is None and config.run.track is None
        run: TaskRun | None
        if kept:
            if self.name is not None and not resume:  # a second fit, and that of a clone
                name = free_name(config.run.runs_dir, self.name)
                config = replace(config, run=replace(config.run, name=name))
            run = train(config, console, resume, data, given, later)
        else:
            folder = _temporary_folder()
            place = replace(config.run, runs_dir=folder)
            if place.track in ("tensorboard", "wandb") and place.track_to is None:
                tracked = RunConfig().runs_dir  # what a tracker writes is to stay
                if place.track == "tensorboard":
                    tracked /= "tensorboard"
                place = replace(place, track_to=str(tracked))
            try:
                run = train(replace(config, run=place), console, resume, data, given, later)
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(error, InterruptedRun):  # there is nothing to go on from
                    raise KeyboardInterrupt from error
                raise
            if run is None:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                _remove_with(run, folder)
        if run is None:
            raise TrainingError("this process of several wrote no run; the first one has it")
        self._fitted(run)
        if run.metrics["interrupted"]:
            console.print(
                f"interrupted; epoch {run.metrics['best_epoch']}, the best so far, is kept"
            )
        if kept:
            console.print(f"run {run.path}")
        return self

    def _training(self) -> Callable[..., TaskRun | None]:
        """Import the function that trains a run of the task."""
        raise NotImplementedError

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
            state["_run_files"] = run.path.name, _run_files(run)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        settings = {name: value for name, value in state.items() if name != "_run_files"}
        super().__setstate__(settings)
        if "_run_files" in state:
            path = _written_run(*state["_run_files"])
            try:
                run = find_task(self._task).open_run(path)
                self._fitted(run)
            except BaseException:
                shutil.rmtree(path.parent, ignore_errors=True)
                raise
            _remove_with(run, path.parent)


def _temporary_folder() -> Path:
    """Make a folder in the system's folder of temporary files."""
    try:
        return Path(tempfile.mkdtemp(prefix="keras-gru-"))
    except OSError as error:
        raise _unwritable(error) from error


def _remove_with(owner: object, folder: Path) -> None:
    """Remove a folder when its owner is collected, or at the end of this process.

    Unlike `weakref.finalize`, this also works at the end of worker processes, and never acts in a
    process that was forked from this one.
    """
    Finalize(owner, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=0)


def _run_files(run: RunDirectory) -> dict[str, bytes]:
    """Read all files of a run by name, its report among them."""
    run.write_report()
    try:
        files = sorted(path for path in run.path.iterdir() if path.is_file())
        return {path.name: path.read_bytes() for path in files}
    except OSError as error:
        raise RunDirectoryError(
            f"cannot read {run.path}, which the estimator was fitted into: "
            f"{error.strerror or error}; load the run from where it is now, or fit again"
        ) from error


def _written_run(name: str, files: Mapping[str, bytes]) -> Path:
    """Write the files of a run to a temporary folder of its own; none is left on an error."""
    folder = _temporary_folder()
    path = folder / name
    try:
        path.mkdir()
        for file, content in files.items():
            (path / file).write_bytes(content)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _unwritable(error, sum(map(len, files.values()))) from error
    return path


def _unwritable(error: OSError, size: int | None = None) -> RunDirectoryError:
    """Make the error for a folder without room for a run, with the way to choose another folder."""
    room = "" if size is None else f" of {size:,} bytes"
    place = os.environ.get("TMPDIR") or tempfile.tempdir or "the temporary folder"
    return RunDirectoryError(
        f"cannot write a run{room} to {place}: {error.strerror or error}; set TMPDIR to a folder "
        "that can be written and has room"
    )
