"""The files of a training run; TensorFlow is needed only for the model and the settings.

=========================  ====================================================================
config.json                task, version and settings; `gru_training.config.from_dict` reads them
settings.toml              the settings for people, which `gru-train TASK --config` reads
model.keras                the model of the best epoch
metrics.json               what it achieves, baselines, counts, versions
history.json               one record per epoch
report.md                  all this for people, with pictures
report.html                the same as one page that needs no other file
manifest.json              the run's files with their sizes; written last
=========================  ====================================================================

Other files depend on the task: `gru_training.sentiment.run`, `gru_training.forecasting.run`.

A run is built in `.<name>.partial-<random>` beside its final place and renamed when it is complete,
so under its own name there is either a complete run or none.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gru_training.config import from_dict
from gru_training.errors import ConfigError, RunDirectoryError

if TYPE_CHECKING:
    import keras


class _Measures(dict[str, Any]):
    """The values of a file; a value that is missing there is an error that names the file."""

    def __init__(self, values: Mapping[str, Any], source: Path) -> None:
        super().__init__(values)
        self._source = source

    def __missing__(self, key: str) -> Any:
        raise RunDirectoryError(
            f"{self._source}: expected a value {key!r}, found none; the file was changed, or "
            "another version of the package wrote it"
        )


def package_version() -> str:
    """Return the version of keras_gru without loading TensorFlow."""
    try:
        return metadata.version("keras-gru")
    except metadata.PackageNotFoundError:  # a checkout that was never installed
        import keras_gru

        return keras_gru.__version__


def read_config(values: Any, config_types: Mapping[str, type], source: Path) -> Any:
    """Read the settings with which a run or a checkpoint was written.

    Args:
        values: JSON values; of gru_training.config.to_dict, with the task and the version.
        config_types: The dataclass of each task that will do.
        source: File of the values, named in messages.

    Raises:
        RunDirectoryError: The settings are of another task or major version, or not as expected.
    """
    values = dict(values) if isinstance(values, dict) else {}
    task = values.pop("task", None)
    values.pop("given", None)
    values.pop("columns", None)
    if task not in config_types:
        raise RunDirectoryError(
            f"{source}: expected a {' or '.join(config_types)} run, got task {task!r}"
        )
    version = package_version()
    made_by = str(values.pop("keras_gru", version))
    if made_by.partition(".")[0] != version.partition(".")[0]:
        raise RunDirectoryError(
            f"{source}: expected a run of the major version of keras_gru "
            f"{version}, got one of {made_by}; train again with this version, "
            "or use it with the version that wrote it"
        )
    try:
        return from_dict(config_types[task], values)
    except ConfigError as error:
        raise RunDirectoryError(f"{source}: {error}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name and rename it, so that it is never incomplete.

    Raises:
        OSError: The file cannot be written.
    """
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


MANIFEST = "manifest.json"

ConfigT = TypeVar("ConfigT")
RunT = TypeVar("RunT", bound="RunDirectory")
WriterT = TypeVar("WriterT", bound="RunWriter")


class RunDirectory:
    """A complete run of any task.

    Args:
        path: Path of the run; `open` checks it.
        report: Function that writes the report, where the training put that off.
    """

    def __init__(self, path: Path, report: Callable[[], None] | None = None):
        self.path, self._report = path, report

    @classmethod
    def open(
        cls: type[RunT], path: str | os.PathLike[str], report: Callable[[], None] | None = None
    ) -> RunT:
        """Open a run, and check that all its files exist with their full size.

        Args:
            path: Path of the run.
            report: Function that writes the report, where the training put that off.

        Raises:
            RunDirectoryError: There is no run, or it is not whole; names what is missing.
        """
        run = cls(Path(path), report)
        if not run.path.is_dir():
            raise RunDirectoryError(f"there is no run directory {path}")
        if not (run.path / MANIFEST).is_file():
            raise RunDirectoryError(
                f"{path} is not a complete run: {MANIFEST} is missing (written last, so training "
                "was "
                "cut short, or this is another kind of folder)"
            )
        files = run._json(MANIFEST)
        if not isinstance(files, dict):
            raise RunDirectoryError(f"{run.path / MANIFEST}: expected file names with sizes")
        for name, size in files.items():
            if name == "report.html":  # which `gru-train report --rewrite` writes in another size
                continue
            file = run.path / name
            if not os.path.isfile(file):  # noqa: PTH113  no name is too long for it
                raise RunDirectoryError(f"{path} is not a complete run: {name} is missing")
            if file.stat().st_size != size:
                raise RunDirectoryError(
                    f"{path} is not a complete run: {name} has {file.stat().st_size} bytes, "
                    f"expected {size}"
                )
        return run

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """The values of `config.json`, unchecked; empty if they are no object."""
        values = self._json("config.json")
        return values if isinstance(values, dict) else {}

    @cached_property
    def task(self) -> str:
        """The name of the task of the run, such as `sentiment`."""
        return str(self._settings.get("task")) if self._settings else "unknown"

    @cached_property
    def given(self) -> dict[str, Any] | None:
        """Facts about data that were given in memory; None if the settings name the data."""
        given = self._settings.get("given")
        return given if isinstance(given, dict) else None

    def column_of(self, name: str) -> str | None:
        """Return the column that the training read for an input, such as `text`."""
        data, found = self._settings.get("data"), self._settings.get("columns")
        of_file = data.get(f"{name}_column") if isinstance(data, dict) else None
        read = found.get(name) if isinstance(found, dict) else None
        column = (self.given or {}).get(name) or of_file or read
        return column if isinstance(column, str) else None

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The measures of the run, from `metrics.json`."""
        metrics = self._json("metrics.json")
        if not isinstance(metrics, dict):
            raise RunDirectoryError(
                f"{self.path / 'metrics.json'}: expected an object, got {metrics!r:.60}"
            )
        return _Measures(metrics, self.path / "metrics.json")

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """One record per epoch."""
        history = self._json("history.json")
        if not isinstance(history, list) or not all(isinstance(one, dict) for one in history):
            raise RunDirectoryError(
                f"{self.path / 'history.json'}: expected a list of objects, got {history!r:.60}"
            )
        return history

    def write_report(self) -> None:
        """Write the report if the training postponed it."""
        if self._report is not None:
            self._report()
            self._report = None
            self.__dict__.pop("metrics", None)  # the report adds to them

    def load_model(self) -> "keras.Model":
        """Load the model of the best epoch.

        Raises:
            RunDirectoryError: The file is damaged.
        """
        return self._load("model.keras")

    def _load(self, name: str) -> "keras.Model":
        """Load a model of the run.

        Args:
            name: File of the model.

        Raises:
            RunDirectoryError: The file is damaged.
        """
        import keras

        import keras_gru  # noqa: F401  knows the layers that the file holds

        path = self.path / name
        try:
            # From Python 3.12 on, HDF5 reads without checking the archive's check sums.
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
            if damaged is not None:
                raise zipfile.BadZipFile(f"{damaged} in it is damaged")
            return keras.models.load_model(path, compile=False)
        except Exception as error:  # a damaged file fails anywhere: zip, JSON, HDF5, the layers
            raise RunDirectoryError(f"cannot load {path}: {error}") from error

    def digest(self, names: Iterable[str]) -> str:
        """Compute the SHA-256 of some files of the run, in hexadecimal.

        Raises:
            RunDirectoryError: A file cannot be read.
        """
        whole = hashlib.sha256()
        for name in names:
            try:
                with (self.path / name).open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise RunDirectoryError(f"cannot read {self.path / name}: {error}") from error
            whole.update(f"{name} {digest}\n".encode())
        return whole.hexdigest()

    def _json(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise RunDirectoryError(f"cannot read {self.path / name}: {error}") from error


class TaskRun(RunDirectory, ABC):
    """A complete run of one task."""

    @property
    @abstractmethod
    def config(self) -> Any:
        """The settings of the run, a dataclass of the task."""

    def _read_config(self, task: str, config_type: type[ConfigT]) -> ConfigT:
        """Read the settings of a run, which must be of this task and of this major version."""
        return cast(ConfigT, read_config(self._json("config.json"), {task: config_type}, self.path))


class RunWriter:
    """A context manager that builds a run in a temporary place and renames it when it is complete.

    If the context ends without `publish`, everything that was built is removed.

    Args:
        runs_dir: Folder of the run directories; made when absent.
        name: Name of the new run.
    """

    def __init__(self, runs_dir: Path, name: str):
        self.final = self.path = runs_dir / name  # the latter until entered

    def __enter__(self: WriterT) -> WriterT:
        try:
            self.final.parent.mkdir(parents=True, exist_ok=True)
            self._begin()
        except OSError as error:
            self._clear()
            raise RunDirectoryError(
                f"cannot write to {self.final.parent}: {error.strerror or error}"
            ) from error
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        failed = self._failed(error) if isinstance(error, OSError) else ""
        self._clear()
        if isinstance(error, OSError):
            raise RunDirectoryError(f"cannot write {failed}: {error.strerror or error}") from error

    def _failed(self, error: OSError) -> str:
        """Name the file that could not be written: the last one begun, if the error names none."""
        if error.filename:
            return str(error.filename).replace(str(self.path), str(self.final))
        files = [] if self.path == self.final else list(self.path.iterdir())
        if not files:
            return f"the run {self.final}"
        last = max(files, key=lambda file: file.stat().st_mtime_ns)
        return str(self.final / last.name)

    def _begin(self) -> None:
        """Make the folder in which the run is built."""
        self._require_free()
        self.path = Path(
            tempfile.mkdtemp(dir=self.final.parent, prefix=f".{self.final.name}.partial-")
        )

    def _clear(self) -> None:
        """Remove the folder unless it was published."""
        if self.path != self.final:
            shutil.rmtree(self.path, ignore_errors=True)

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the run, UTF-8."""
        (self.path / name).write_text(text, "utf-8", newline="\n")

    def write_json(self, name: str, value: Any) -> None:
        """Write a file of the run as JSON; NaN and infinity are refused."""
        self.write_text(
            name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        )

    def publish(self) -> Path:
        """Write the manifest and rename the run into place.

        Returns:
            Path of the run.

        Raises:
            RunDirectoryError: A run of this name has come into being meanwhile.
        """
        self.write_manifest()
        for file in self.path.iterdir():
            _to_disk(file)
        self._require_free()
        self.path.chmod(0o777 & ~_umask())  # mkdtemp's own mode shuts others out
        self.path.rename(self.final)
        self.path = self.final
        _to_disk(self.final.parent)
        return self.final

    def write_manifest(self) -> None:
        """Write the names and sizes of the run's files."""
        files = sorted(path for path in self.path.iterdir() if path.name != MANIFEST)
        self.write_json(MANIFEST, {file.name: file.stat().st_size for file in files})

    def _require_free(self) -> None:
        if os.path.lexists(self.final):
            raise RunDirectoryError(
                f"{self.final} exists already; choose another --name or remove it"
            )


def free_name(folder: Path, name: str, is_taken: Callable[[Path], bool] = os.path.lexists) -> str:
    """Return a name for a run, with a number if a run of that name exists.

    Args:
        folder: Folder of the runs.
        name: Name wanted.
        is_taken: Whether there is a run, or what is left of one, at a place.
    """
    free, number = name, 1
    while is_taken(folder / free):
        number += 1
        free = f"{name}-{number}"
    return free


def _to_disk(path: Path) -> None:
    """Flush a file or folder to disk, so that it survives a power cut."""
    if sys.platform == "win32":  # opens no folders, and syncs nothing that is open for reading
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
