"""What a training run leaves behind.

=========================  ====================================================================
config.json                task, version and settings; :func:`training.config.from_dict` reads them
classes.json               class names, in the order of the model's outputs
vocabulary.txt             one token per line; the line number from 0 is the id
model.keras                the model of the best epoch: word ids (B, T) in, logits (B, C) out
metrics.json               accuracy and loss, baselines, counts, versions
history.json               one record per epoch
test_predictions.jsonl     text, label, predicted, scores of each held-out test row
curves.png                 loss and accuracy over the epochs
confusion_matrix.png       label against prediction on the test rows
report.md                  all this for people
manifest.json              the files above with their sizes; written last
=========================  ====================================================================

A run is built in ``.<name>.partial-<random>`` beside its final place and renamed when it is
whole, so that under its own name there is either a complete run or none.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast

import keras

import keras_gru
from training import sentiment_model  # noqa: F401  registers the layers model.keras holds
from training.config import SentimentConfig, from_dict
from training.errors import ConfigError, DataError, RunDirectoryError
from training.vocabulary import TextPreprocessor, Vocabulary, load_vocabulary

MANIFEST = "manifest.json"


class LabelledPrediction(NamedTuple):
    """A held-out row and what the model says of it."""

    text: str
    label: str
    predicted: str
    scores: list[float]
    """Probability of each class, in the order of the classes."""


class RunDirectory:
    """A complete run.

    Args:
        path: where it lies; :meth:`open` checks it.
    """

    def __init__(self, path: Path):
        self.path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "RunDirectory":
        """Opens a run and checks that all its files are there at their full size.

        Raises:
            RunDirectoryError: there is no run, or it is not whole; names what is missing.
        """
        run = cls(Path(path))
        if not run.path.is_dir():
            raise RunDirectoryError(f"there is no run directory {path}")
        if not (run.path / MANIFEST).is_file():
            raise RunDirectoryError(
                f"{path} is no complete run: {MANIFEST} is missing (written last, so training was "
                "cut short, or this is another kind of folder)"
            )
        files = run._json(MANIFEST)
        if not isinstance(files, dict):
            raise RunDirectoryError(f"{run.path / MANIFEST}: expected file names with sizes")
        for name, size in files.items():
            file = run.path / name
            if not file.is_file():
                raise RunDirectoryError(f"{path} is no complete run: {name} is missing")
            if file.stat().st_size != size:
                raise RunDirectoryError(
                    f"{path} is no complete run: {name} has {file.stat().st_size} bytes, "
                    f"expected {size}"
                )
        return run

    @cached_property
    def task(self) -> str:
        """What the run was trained for, as ``sentiment``."""
        values = self._json("config.json")
        return str(values.get("task")) if isinstance(values, dict) else "unknown"

    @cached_property
    def config(self) -> SentimentConfig:
        """The settings of the run."""
        values = self._json("config.json")
        task = values.pop("task", None) if isinstance(values, dict) else None
        if task != "sentiment":
            raise RunDirectoryError(f"{self.path}: expected a sentiment run, got task {task!r}")
        made_by = str(values.pop("keras_gru", keras_gru.__version__))
        if made_by.partition(".")[0] != keras_gru.__version__.partition(".")[0]:
            raise RunDirectoryError(
                f"{self.path}: expected a run of the major version of keras_gru "
                f"{keras_gru.__version__}, got one of {made_by}; train again with this version, "
                "or use it with the version that wrote it"
            )
        try:
            return from_dict(SentimentConfig, values)
        except ConfigError as error:
            raise RunDirectoryError(f"{self.path / 'config.json'}: {error}") from error

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of the model's outputs."""
        names = self._json("classes.json")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RunDirectoryError(
                f"{self.path / 'classes.json'}: expected a list of names, got {names!r:.80}"
            )
        return tuple(names)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words the model knows."""
        try:
            return load_vocabulary(self.path / "vocabulary.txt")
        except (DataError, ValueError) as error:
            raise RunDirectoryError(str(error)) from error

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What the run achieved."""
        return cast(dict[str, Any], self._json("metrics.json"))

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """One record per epoch."""
        return cast(list[dict[str, Any]], self._json("history.json"))

    def preprocessor(self) -> TextPreprocessor:
        """Text to word ids, as in training."""
        return TextPreprocessor(self.vocabulary, self.config.data.max_tokens)

    def load_model(self) -> keras.Model:
        """The model of the best epoch: word ids (B, T) int32 to logits (B, C).

        Raises:
            RunDirectoryError: the file is damaged, or the model has another number of classes
                than the run.
        """
        path = self.path / "model.keras"
        try:
            model = keras.models.load_model(path, compile=False)
        except Exception as error:  # a damaged file fails anywhere: zip, JSON, HDF5, the layers
            raise RunDirectoryError(f"cannot load {path}: {error}") from error
        if model.output_shape[-1] != len(self.classes):
            raise RunDirectoryError(
                f"{self.path}: expected as many classes as outputs of model.keras, "
                f"{model.output_shape[-1]}; got {len(self.classes)} in classes.json"
            )
        return model

    def test_predictions(self) -> Iterator[LabelledPrediction]:
        """The held-out test rows with the model's answers, in the order of the data."""
        path = self.path / "test_predictions.jsonl"
        try:
            with path.open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    yield LabelledPrediction(**json.loads(line))
        except (OSError, ValueError, TypeError) as error:
            raise RunDirectoryError(f"cannot read {path}: {error}") from error

    def _json(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise RunDirectoryError(f"cannot read {self.path / name}: {error}") from error


class RunWriter:
    """Builds a run aside and puts it in place when whole; a context manager.

    Leaving the context without :meth:`publish` removes what was built.

    Args:
        runs_dir: folder of the run directories; made when absent.
        name: name of the new run.
    """

    def __init__(self, runs_dir: Path, name: str):
        self.final = runs_dir / name
        self.path = self.final  # until entered

    def __enter__(self) -> "RunWriter":
        self._require_free()
        try:
            self.final.parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(
                tempfile.mkdtemp(dir=self.final.parent, prefix=f".{self.final.name}.partial-")
            )
        except OSError as error:
            raise RunDirectoryError(
                f"cannot write to {self.final.parent}: {error.strerror or error}"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.path != self.final:
            shutil.rmtree(self.path, ignore_errors=True)
        if isinstance(error, OSError):
            raise RunDirectoryError(f"cannot write the run {self.final}: {error}") from error

    def write_text(self, name: str, text: str) -> None:
        """Writes a file of the run, UTF-8."""
        (self.path / name).write_text(text, "utf-8", newline="\n")

    def write_json(self, name: str, value: Any) -> None:
        """Writes a file of the run as JSON; NaN and infinity are refused."""
        self.write_text(
            name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        )

    def publish(self) -> RunDirectory:
        """Writes the manifest and renames the run into place.

        Raises:
            RunDirectoryError: a run of this name has come into being meanwhile.
        """
        files = sorted(self.path.iterdir())
        self.write_json(MANIFEST, {file.name: file.stat().st_size for file in files})
        for file in self.path.iterdir():
            _to_disk(file)
        self._require_free()
        self.path.chmod(0o777 & ~_umask())  # mkdtemp's own mode shuts others out
        self.path.rename(self.final)
        self.path = self.final
        _to_disk(self.final.parent)
        return RunDirectory.open(self.final)

    def _require_free(self) -> None:
        if os.path.lexists(self.final):
            raise RunDirectoryError(
                f"{self.final} exists already; choose another --name or remove it"
            )


def _to_disk(path: Path) -> None:
    """Makes a file or folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
