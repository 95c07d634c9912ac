"""The export of a training run as a self-contained, versioned SavedModel.

It is independent of tasks: it exports the `gru_training.servable.Servable` of the run's task. After
the export, engines need nothing but the SavedModel directory.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.saved_model import fingerprinting_utils

import keras_gru
from gru_serving.codecs.signature import CLASSIFY_METHOD, REGRESS_METHOD
from gru_serving.drift.quantities import Quantities
from gru_serving.drift.reference import Reference
from gru_serving.drift.text_reader import TextReader
from gru_serving.engine.golden import TOLERANCE, difference, write_golden
from gru_serving.engine.portability import portability_faults
from gru_serving.engine.warmup import write_records
from gru_serving.errors import InterfaceChangeError
from gru_serving.export.files import golden_request, warmup_record, write_onnx
from gru_serving.preprocessing.description import Description
from gru_serving.release.interface import MODEL_CARD, check_next_version
from gru_serving.storage.digests import write_digests
from gru_serving.storage.publishing import PublishError, publisher, put_in_place
from gru_serving.storage.signatures import Signer
from gru_training.config import to_dict
from gru_training.errors import TrainingError
from gru_training.runs.directory import RunDirectory, TaskRun
from gru_training.servable import OnnxModel, Servable
from gru_training.task import TASKS, Task, find_task

_METHOD_NAMES = {"classify": CLASSIFY_METHOD, "regress": REGRESS_METHOD}


class ExportError(Exception):
    """A run cannot be exported, or its target cannot be written."""


class Exported(NamedTuple):
    """The result of an export.

    Attributes:
        version: Directory of the new version.
        signatures: Names of its signatures.
        parity: Figures on streaming beside the sequence, None where the model cannot stream.
        seconds: Time that each step of the export took, in their order.
        notes: Sentences on what of the run the version cannot do.
    """

    version: Path
    signatures: list[str]
    parity: dict[str, Any] | None
    seconds: dict[str, float]
    notes: Sequence[str]


def export_run(
    path: Path,
    target: Path,
    allow_interface_change: bool = False,
    signer: Signer | None = None,
) -> Exported:
    """Write a run's model as the next version of a served model.

    The version is built in a temporary place, checked to be portable and pure, compared with the
    Keras model by fresh processes, and only then renamed to its number, so there is never an
    incomplete version.

    Args:
        path: A run directory.
        target: Base path of the served model; its children are versions.
        allow_interface_change: Whether the version may lack what clients of the highest version
            there rely on.
        signer: Signer of the version; None for no signature.

    Raises:
        ExportError: The run is not whole, the target cannot be written or another process is
            publishing to it, or the written model fails a check.
    """
    try:
        task, run = _open(path)
        with publisher(target) as aside:
            clock = _Clock()
            servable = task.servable(run)
            clock.note("loading and tracing")
            parity = _parity(servable)
            clock.note("comparing streaming with the sequence")
            _write_model(aside, servable, clock)
            onnx = _write_onnx(aside, servable)
            _write_reference(aside, servable)
            clock.note("graphs of ONNX")
            card = {"task": run.task, **servable.card(), **_provenance(run)}
            card["streaming_parity"] = parity
            card["onnx"] = {"signatures": sorted(onnx.signatures), "left_to_tensorflow": onnx.left}
            (aside / MODEL_CARD).write_text(json.dumps(card, ensure_ascii=False, indent=1), "utf-8")
            if not allow_interface_change:
                check_next_version(target, aside)
            _check(aside, ["tensorflow", "onnx"] if onnx.signatures else ["tensorflow"])
            write_digests(aside)
            if signer is not None:
                signer.sign(aside)
            clock.note("checking in a fresh process")
            version = put_in_place(aside, target)
        notes = [*servable.notes(), *(_without_tensorflow(*each) for each in onnx.left.items())]
        return Exported(version, sorted(servable.signatures), parity, clock.seconds, notes)
    except (TrainingError, PublishError) as error:
        raise ExportError(str(error)) from error
    except InterfaceChangeError as error:
        raise ExportError(f"--to {target}: {error}") from error
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise ExportError(
            f"--to {target}: expected a directory that can be written, got: {error.strerror}"
        ) from error
    except (OSError, tf.errors.OpError) as error:
        reason = error.message if isinstance(error, tf.errors.OpError) else error
        raise ExportError(f"--to {target}: writing failed: {reason}") from error


def _open(path: Path) -> tuple[Task, TaskRun]:
    """Open the run and its task, and refuse anything unsuitable before the slow steps."""
    name = RunDirectory.open(path).task
    if name not in TASKS:
        raise ExportError(
            f"{path}: expected a run of one of the tasks {', '.join(TASKS)}, got task {name!r}"
        )
    task = find_task(name)
    run = task.open_run(path)
    run.config  # noqa: B018
    return task, run


def _without_tensorflow(signature: str, reason: str) -> str:
    return f"servers without TensorFlow do not offer {signature!r}: {reason}"


class _Clock:
    """The seconds of each step by its name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def note(self, step: str) -> None:
        """Record the time since the previous step under this name."""
        now = time.perf_counter()
        self.seconds[step] = now - self._since
        self._since = now


def _write_model(version: Path, servable: Servable, clock: _Clock) -> None:
    """Write the SavedModel with golden and warmup requests."""
    tf.saved_model.save(servable.module, str(version), signatures=servable.signatures)
    golden = servable.golden()
    _set_methods(version, {each.signature: each.method for each in golden})
    clock.note("saving, and golden answers")
    write_golden(version, [golden_request(each) for each in golden])
    write_records(version, [warmup_record(each) for each in servable.warmup(golden)])
    clock.note("warmup requests")


def _write_onnx(version: Path, servable: Servable) -> Description:
    """Write the ONNX graphs; if making one fails, the export goes on and the failure is listed."""
    try:
        model = servable.onnx()
    except Exception as error:
        reason = f"writing its graph failed: {type(error).__name__}: {error}"
        model = OnnxModel(Description(left=dict.fromkeys(servable.signatures, reason)))
    return write_onnx(version, model)


def _write_reference(version: Path, servable: Servable) -> None:
    """Write the distributions of held-out requests; after the graphs, whose words it counts."""
    request = servable.reference()
    if request is not None:
        columns = servable.columns()
        quantities = Quantities(TextReader.of_version(version), columns)
        Reference.of(quantities(request.inputs, request.outputs), columns).write(version)


def _check(version: Path, runtimes: Sequence[str]) -> None:
    """Refuse a version that is not portable, or whose answers differ from the Keras model's."""
    faults = portability_faults(version)
    if faults:
        raise ExportError("the graph is not portable:\n  " + "\n  ".join(map(str, faults)))
    for runtime in runtimes:
        _verify_in_a_fresh_process(version, runtime)


def _parity(servable: Servable) -> dict[str, Any] | None:
    """Measure the difference between step-by-step streaming and the whole sequence.

    None without a step signature.

    Raises:
        ExportError: Streaming is too far from the sequence.
    """
    streamed = servable.streamed()
    if streamed is None:
        return None
    rows, steps, differing, largest = 0, 0, 0, 0.0
    for whole, step in streamed:
        gap = difference(whole, step).reshape(len(whole), -1).max(axis=1)  # of each row
        rows, steps = max(rows, len(whole)), steps + 1
        largest = float(np.maximum(largest, gap.max()))  # NaN stays
        differing += int((gap > 0).sum())
    if not largest <= TOLERANCE:
        raise ExportError(
            f"streaming differs from the sequence by {largest:.1e}, more than {TOLERANCE:g}"
        )
    return {
        "rows": rows,
        "steps": steps,
        "steps_that_differ_at_all": differing,
        "largest_difference": largest,
    }


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


def _set_methods(saved_model: Path, methods: Mapping[str, str]) -> None:
    """Set the TF Serving method of signatures that are not for Predict.

    `tf.saved_model.save` has no argument for it; engines that check it (TF Serving's
    --enable_signature_method_name_check) would refuse Classify and Regress.
    """
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(saved_model))
    for name, method in methods.items():
        if method in _METHOD_NAMES:
            updater.replace_method_name(name, _METHOD_NAMES[method])
    updater.save()
    # The graph's file has changed, and its fingerprint must be that of the file that is served.
    fingerprinting_utils.write_fingerprint(str(saved_model))


def _verify_in_a_fresh_process(version: Path, runtime: str) -> None:
    """Verify in a fresh process, since the custom layers are registered in this one."""
    check = subprocess.run(
        [
            sys.executable,
            "-m",
            "gru_serving",
            "verify",
            str(version),
            "--warmup",
            f"--runtime={runtime}",
        ],
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
