"""From a training run to a self-contained, versioned SavedModel.

The only module of this package that imports keras_gru or training: past it, the SavedModel
directory is all that an engine needs.
"""

from __future__ import annotations

import functools
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_gru
from serving.portability import portability_faults
from serving.verify import GOLDEN
from training.config import to_dict
from training.errors import TrainingError
from training.run_directory import RunDirectory
from training.vocabulary import TextPreprocessor

MODEL_CARD = Path("assets.extra") / "model_card.json"
_GOLDEN_BATCHES = (1, 1, 2, 12, 32)


class ExportError(Exception):
    """A run cannot be exported, or its target cannot be written."""


class SentimentModule(tf.Module):
    """A text classifier with its preprocessing: raw strings in, labels out.

    Args:
        model: from word ids (B, T) to logits (B, C).
        preprocessor: from texts (B,) to word ids.
        classes: the C labels, in the order of the logits.
    """

    def __init__(
        self, model: keras.Model, preprocessor: TextPreprocessor, classes: tuple[str, ...]
    ) -> None:
        super().__init__(name="sentiment")
        # A bare function: of a model as attribute the writer would save Keras' own graphs too.
        self._logits = functools.partial(model, training=False)
        self._weights = [variable.value for variable in model.variables]
        self._preprocessor = preprocessor
        self._classes = tf.constant(classes, tf.string)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def serving_default(self, text: Any) -> dict[str, Any]:
        """Classify texts.

        Args:
            text: (B,) string.

        Returns:
            `label` (B,) string, `probability` of that label (B,) and `scores` of all classes
            (B, C), float32.
        """
        logits = self._logits(self._preprocessor(text))
        scores = tf.nn.softmax(tf.cast(logits, tf.float32))
        return {
            "label": tf.gather(self._classes, tf.argmax(scores, axis=-1)),
            "probability": tf.reduce_max(scores, axis=-1),
            "scores": scores,
        }


def export_run(path: Path, target: Path) -> Path:
    """Write a run's model as the next version of a served model.

    The version is built beside its place, checked to be portable and pure, compared with the
    Keras model by a fresh process, and only then given its number: there is never half a version.

    Args:
        path: a run directory.
        target: base path of the served model; its children are versions.

    Returns:
        The directory of the new version, `target/<number>`.

    Raises:
        ExportError: the run is not whole, the target cannot be written, or the written model
            fails a check.
    """
    try:
        run = RunDirectory.open(path)
        model = run.load_model()
        preprocessor = run.preprocessor()
        module = SentimentModule(model, preprocessor, run.classes)
        golden = _golden_requests(model, preprocessor, run)
    except TrainingError as error:
        raise ExportError(str(error)) from error
    try:
        target.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".export-", dir=target))
    except OSError as error:
        raise ExportError(
            f"--to {target}: expected a directory that can be written, got: {error.strerror}"
        ) from error
    try:
        tf.saved_model.save(
            module, str(aside), signatures={"serving_default": module.serving_default}
        )
        (aside / GOLDEN).parent.mkdir()
        (aside / GOLDEN).write_text(json.dumps(golden, ensure_ascii=False, indent=1), "utf-8")
        (aside / MODEL_CARD).write_text(
            json.dumps(_model_card(run, model), ensure_ascii=False, indent=1), "utf-8"
        )
        faults = portability_faults(aside)
        if faults:
            raise ExportError("the graph is not portable:\n  " + "\n  ".join(map(str, faults)))
        _verify_in_a_fresh_process(aside)
        aside.chmod(0o755)  # mkdtemp's 0700 would lock out a server with another user
        return _publish(aside, target)
    except (OSError, tf.errors.OpError) as error:
        reason = error.message if isinstance(error, tf.errors.OpError) else error
        raise ExportError(f"--to {target}: writing failed: {reason}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _golden_requests(
    model: keras.Model, preprocessor: TextPreprocessor, run: RunDirectory
) -> list[dict[str, Any]]:
    """Requests on held-out texts, with the answers of the Keras model."""
    rows = itertools.islice(run.test_predictions(), sum(_GOLDEN_BATCHES) - 1)
    texts = ["", *(row.text for row in rows)]
    requests, start = [], 0
    for size in _GOLDEN_BATCHES:
        batch = texts[start : start + size] or texts[:size]
        start += size
        logits = model(preprocessor(tf.constant(batch)), training=False)
        scores = keras.ops.convert_to_numpy(keras.ops.softmax(logits)).astype(np.float64)
        requests.append(
            {
                "signature_name": "serving_default",
                "inputs": {"text": batch},
                "outputs": {
                    "label": [run.classes[i] for i in scores.argmax(-1)],
                    "probability": scores.max(-1).tolist(),
                    "scores": scores.tolist(),
                },
            }
        )
    return requests


def _model_card(run: RunDirectory, model: keras.Model) -> dict[str, Any]:
    return {
        "task": "sentiment",
        "classes": list(run.classes),
        "run": run.path.name,
        "config": to_dict(run.config),
        "metrics": run.metrics,
        "parameters": model.count_params(),
        "vocabulary_size": len(run.vocabulary),
        "versions": {
            "keras_gru": keras_gru.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
        },
    }


def _verify_in_a_fresh_process(version: Path) -> None:
    """Loading here would prove little: this process has the custom layers registered."""
    check = subprocess.run(
        [sys.executable, "-m", "serving", "verify", str(version)],
        capture_output=True,
        text=True,
        check=False,
    )
    if check.returncode != 0:
        raise ExportError(
            f"the exported model does not answer as the Keras model does:\n{check.stderr.strip()}"
        )


def _publish(aside: Path, target: Path) -> Path:
    """Rename to the next free number; another process may take it first."""
    while True:
        taken = [int(child.name) for child in target.iterdir() if child.name.isdecimal()]
        version = target / str(max(taken, default=0) + 1)
        try:
            aside.rename(version)
        except OSError:
            if version.exists():
                continue
            raise
        return version
