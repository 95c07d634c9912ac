"""From a training run to a self-contained, versioned SavedModel.

With the modules `export_<task>` the only one of this package that imports keras_gru or training:
past it, the SavedModel directory is all that an engine needs.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import keras
import tensorflow as tf
from tensorflow.python.saved_model import fingerprinting_utils

import keras_gru
from serving.digests import write_digests
from serving.export_forecasting import ForecastingExport
from serving.export_sentiment import SentimentExport
from serving.golden import TOLERANCE, write_golden
from serving.portability import portability_faults
from serving.protos.prediction_log_pb2 import PredictionLog
from serving.publishing import PublishError, publisher, put_in_place
from serving.warmup import write_records
from training.config import to_dict
from training.errors import TrainingError
from training.forecasting_run import ForecastingRun
from training.run_directory import RunDirectory, TaskRun
from training.sentiment_run import SentimentRun

MODEL_CARD = Path("assets.extra") / "model_card.json"


class ExportError(Exception):
    """A run cannot be exported, or its target cannot be written."""


class Exported(NamedTuple):
    """What came of an export.

    Attributes:
        version: the directory of the new version.
        signatures: the names of its signatures.
        parity: of streaming with the sequence, None where the model cannot stream.
    """

    version: Path
    signatures: list[str]
    parity: dict[str, Any] | None


class TaskExport(Protocol):
    """What a task contributes to an export.

    Attributes:
        module: to be saved.
        signatures: concrete functions by signature name.
        methods: TF Serving's method names of the signatures that are not for Predict.
    """

    module: tf.Module
    signatures: dict[str, Any]
    methods: dict[str, str]

    def golden(self) -> list[dict[str, Any]]:
        """Golden requests (`serving.golden`) for every signature."""

    def warmup(self) -> list[PredictionLog]:
        """Warmup requests for every signature."""

    def parity(self) -> dict[str, Any] | None:
        """Streaming against the sequence: at least `largest_difference`; None without streaming."""

    def card(self) -> dict[str, Any]:
        """Part of the model card."""


class Task(NamedTuple):
    """How to export the runs of a task.

    Attributes:
        run: opens the run directory.
        export: made of the opened run.
    """

    run: type[TaskRun]
    export: Callable[[Any], TaskExport]


TASKS = {
    ForecastingExport.task: Task(ForecastingRun, ForecastingExport),
    SentimentExport.task: Task(SentimentRun, SentimentExport),
}
"""By the task's name in `config.json`."""


def export_run(path: Path, target: Path) -> Exported:
    """Write a run's model as the next version of a served model.

    The version is built beside its place, checked to be portable and pure, compared with the
    Keras model by a fresh process, and only then given its number: there is never half a version.

    Args:
        path: a run directory.
        target: base path of the served model; its children are versions.

    Raises:
        ExportError: the run is not whole, the target cannot be written or another process is
            publishing to it, or the written model fails a check.
    """
    try:
        run = _open(path)
        with publisher(target) as aside:
            signatures, parity = _build(run, aside)
            return Exported(put_in_place(aside, target), signatures, parity)
    except (TrainingError, PublishError) as error:
        raise ExportError(str(error)) from error
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise ExportError(
            f"--to {target}: expected a directory that can be written, got: {error.strerror}"
        ) from error
    except (OSError, tf.errors.OpError) as error:
        reason = error.message if isinstance(error, tf.errors.OpError) else error
        raise ExportError(f"--to {target}: writing failed: {reason}") from error


def _open(path: Path) -> TaskRun:
    """The run as one of its task; says what does not fit before anything costs time."""
    task = RunDirectory.open(path).task
    if task not in TASKS:
        raise ExportError(
            f"{path}: expected a run of one of the tasks {', '.join(TASKS)}, got task {task!r}"
        )
    run = TASKS[task].run.open(path)
    run.config  # noqa: B018
    return run


def _build(run: TaskRun, aside: Path) -> tuple[list[str], dict[str, Any] | None]:
    """Write the version and check it; returns the signatures' names and the parity."""
    task = TASKS[run.task].export(run)
    parity = task.parity()
    if parity is not None and not parity["largest_difference"] <= TOLERANCE:
        raise ExportError(
            f"streaming differs from the sequence by {parity['largest_difference']:.1e}, more than "
            f"{TOLERANCE:g}"
        )
    tf.saved_model.save(task.module, str(aside), signatures=task.signatures)
    _set_methods(aside, task.methods)
    write_golden(aside, task.golden())
    write_records(aside, task.warmup())
    card = {**task.card(), **_provenance(run), "streaming_parity": parity}
    (aside / MODEL_CARD).write_text(json.dumps(card, ensure_ascii=False, indent=1), "utf-8")
    faults = portability_faults(aside)
    if faults:
        raise ExportError("the graph is not portable:\n  " + "\n  ".join(map(str, faults)))
    _verify_in_a_fresh_process(aside)
    write_digests(aside)
    return sorted(task.signatures), parity


def _provenance(run: TaskRun) -> dict[str, Any]:
    return {
        "run": run.path.name,
        "config": to_dict(run.config),
        "metrics": run.metrics,
        "versions": {
            "keras_gru": keras_gru.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
        },
    }


def _set_methods(saved_model: Path, methods: dict[str, str]) -> None:
    """Name the TF Serving method of signatures that are not for Predict.

    `tf.saved_model.save` has no argument for it; engines that check it (TF Serving's
    --enable_signature_method_name_check) would refuse Classify and Regress.
    """
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(saved_model))
    for name, method in methods.items():
        updater.replace_method_name(name, method)
    updater.save()
    # The graph's file is another now, and its fingerprint must be that of what is served.
    fingerprinting_utils.write_fingerprint(str(saved_model))


def _verify_in_a_fresh_process(version: Path) -> None:
    """Loading here would prove little: this process has the custom layers registered."""
    check = subprocess.run(
        [sys.executable, "-m", "serving", "verify", str(version), "--warmup"],
        capture_output=True,
        text=True,
        check=False,
    )
    if check.returncode < 0:
        name = signal.Signals(-check.returncode).name
        raise ExportError(
            f"the process that loads the exported model and checks its answers died of {name}, as "
            f"a server of it may:\n{check.stderr.strip()}"
        )
    if check.returncode != 0:
        raise ExportError(
            f"the exported model does not answer as the Keras model does:\n{check.stderr.strip()}"
        )
