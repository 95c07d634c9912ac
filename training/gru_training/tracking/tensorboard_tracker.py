"""Event files for TensorBoard, written with `tf.summary`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from gru_training.loop.checkpoint import EpochRecord
from gru_training.runs.directory import RunDirectory
from gru_training.runs.report_page import markdown_table
from gru_training.tracking.tracker import Beginning, FinishedRun, Outcome, epoch_measures

_MAX_WORDS = 10_000


_TABLE, _LABELS = "word_vectors.tsv", "words.tsv"


class TensorBoardTracker:
    """Writes the files of `tensorboard --logdir`: scalars, settings, pictures, word vectors.

    Args:
        folder: Folder of this training; files there of an earlier one of the same name are
            replaced.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._writer: Any = None

    def start(self, beginning: Beginning) -> None:
        """Write settings and data, as a text and for the tab HPARAMS."""
        from tensorboard.plugins.hparams import api

        for left in self._folder.glob("events.out.tfevents.*"):
            left.unlink()
        self._folder.mkdir(parents=True, exist_ok=True)  # else an error would come from C++, late
        self._writer = tf.summary.create_file_writer(str(self._folder))
        data = beginning.data
        rows = {
            "task": beginning.task,
            "keras_gru": beginning.version,
            "data.name": data.name,
            "data.sha256": data.sha256,
            **{f"data.{part}.rows": size for part, size in data.sizes.items()},
            **beginning.settings,
        }
        with self._writer.as_default():
            shown = [
                ("setting", "value"),
                *((name, _simple(value)) for name, value in rows.items()),
            ]
            tf.summary.text("settings", "\n".join(markdown_table(shown, words=2)), step=0)
            api.hparams(
                {name: _simple(value) for name, value in rows.items()}, trial_id=beginning.name
            )
        self._writer.flush()

    def epoch(self, record: EpochRecord) -> None:
        """Write the measures of an epoch as scalars."""
        with self._writer.as_default():
            for name, value in epoch_measures(record).items():
                tf.summary.scalar(name, value, step=record.epoch)
        self._writer.flush()

    def results(self, run: FinishedRun) -> None:
        """Write measures, pictures and, for texts, word vectors for the tab PROJECTOR."""
        with self._writer.as_default():
            for name, value in run.measures.items():
                tf.summary.scalar(name, value, step=run.best_epoch)
            for picture in run.pictures:
                image = tf.io.decode_png(picture.read_bytes(), channels=3)
                tf.summary.image(f"report/{picture.stem}", image[tf.newaxis], step=run.best_epoch)
        self._writer.flush()
        self._write_vectors(run.path)

    def finish(self, outcome: Outcome) -> None:
        """Write the outcome, and close the files."""
        if self._writer is None:
            return
        with self._writer.as_default():
            tf.summary.text("outcome", outcome, step=0)
        self._writer.close()

    def _write_vectors(self, path: Path) -> None:
        """Write the word vectors of a run that has a vocabulary and a layer `embedding`."""
        vocabulary = path / "vocabulary.txt"
        if not vocabulary.is_file():
            return
        words = vocabulary.read_text("utf-8").removesuffix("\n").split("\n")[:_MAX_WORDS]
        model = RunDirectory.open(path).load_model()
        if not any(layer.name == "embedding" for layer in model.layers):
            return
        ids = np.arange(len(words), dtype=np.int32)[np.newaxis]
        vectors = np.asarray(model.get_layer("embedding")(ids))[0]
        # The projector reads tables with tabs and newlines, and drops an empty first line.
        named = [" ".join(word.split()) or "(blank)" for word in words]
        lines = ("\t".join(f"{number:.5g}" for number in row) for row in vectors)
        (self._folder / _TABLE).write_text("\n".join(lines) + "\n", "utf-8")
        (self._folder / _LABELS).write_text("\n".join(named) + "\n", "utf-8")
        (self._folder / "projector_config.pbtxt").write_text(
            'embeddings {\n  tensor_name: "word vectors"\n'
            f'  tensor_path: "{_TABLE}"\n  metadata_path: "{_LABELS}"\n}}\n',
            "utf-8",
        )


def _simple(value: Any) -> bool | float | int | str:
    """Convert a value to a type that HPARAMS takes."""
    return value if isinstance(value, bool | float | int | str) else json.dumps(value)
