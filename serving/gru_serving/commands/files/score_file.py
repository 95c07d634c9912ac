"""`gru-serve predict --data`: score a file of texts with a server, and write the answers to a file.

Modules that read and write tables are imported only when a file is scored.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gru_serving.client import Client
from gru_serving.codecs.dtypes import by_number
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, Signature
from gru_serving.commands.connection_arguments import target_of
from gru_serving.commands.files.series_csv import text_format
from gru_serving.commands.terminal import safe_text
from gru_serving.errors import FailedPrecondition, InvalidArgument, ServingError, Unknown
from gru_training.scoring.class_columns import (
    BOUNDS,
    AnswerColumns,
    answer_columns,
    class_columns,
    text_column,
)
from gru_training.scoring.scorer import BatchLimits

_LETTERS_PER_STEP = 5
_LABELS = {"labels": 2, "scores": 2, "thresholds": 2}
_NUMBER = {"value": 1, "quantiles": 2}
_LIKELIHOOD = {
    "log_likelihood": 1,
    "end_log_probability": 1,
    "tokens": 2,
    "log_probabilities": 2,
    "length": 1,
}
"""Outputs of models of several labels, of a number and of a language, with their dimensions."""
_CLASSES = ("label", "probability", "scores")


class ServedModel:
    """A text model on a server, as a scorer of `gru_training.scoring`.

    All rows are answered by one version, the one that the server names at the beginning.

    Args:
        client: Client of the server.
        arguments: Model, version, label, signature, requests.

    Raises:
        ServingError: There is no such model, or it does not take texts alone.
    """

    inputs = ("text",)

    def __init__(self, client: Client, arguments: argparse.Namespace) -> None:
        self._client, self._name = client, arguments.model
        self._signature_name = arguments.signature or DEFAULT_SIGNATURE
        metadata = client.metadata(arguments.model, **target_of(arguments))
        self.version = metadata.version
        self._signature = metadata.find(arguments.signature)
        self.input_name = _text_input(self._signature)
        self._has_classify = "classify" in metadata.signatures
        self.limits = BatchLimits(steps=1 << 14, rows=512, in_flight=arguments.in_flight)
        self.identity = {
            "url": client.url,
            "model": arguments.model,
            "version": str(self.version),
            "signature": self._signature_name,
            # Another model may serve under the same name and number, for instance after a fresh
            # start.
            "answer": self._digest_of_an_answer(),
        }

    @cached_property
    def answers(self) -> pa.Schema:
        """The columns of `gru-train predict` if the model is one of texts of `gru-train`.

        For other models, there is a column per output: a list if an output has further dimensions.
        """
        if self._columns is not None:
            return self._columns.schema
        fields = []
        for name, array in self._probe.items():
            kind = _arrow_type(name, array.dtype)
            if name == "scores" and self._classes is not None:
                fields += [pa.field(column, kind) for column in class_columns(self._classes)]
                continue
            for _ in range(array.ndim - 1):
                kind = pa.list_(kind)
            fields.append(pa.field(name, kind))
        return pa.schema(fields)

    def read(self, rows: pa.RecordBatch) -> Texts:
        """Estimate the lengths of texts.

        Raises:
            RowError: The column holds no texts.
        """
        return Texts(self, rows.column("text"))

    def answer(self, texts: list[bytes]) -> pa.RecordBatch:
        """Ask the server for the answers to some texts."""
        outputs = self._ask(texts)
        if self._columns is not None:
            return self._columns.batch(outputs)
        columns: list[Any] = []
        for name in self._probe:
            array = outputs[name]
            if array.ndim == 0 or len(array) != len(texts):
                raise Unknown(
                    f"the server's answer: output {name!r}: expected one for each of {len(texts)} "
                    f"texts; got shape {list(array.shape)}"
                )
            if array.dtype == object:
                array = np.vectorize(_decoded, otypes=[object])(array) if array.size else array
            if name == "scores" and self._classes is not None:
                columns += [np.ascontiguousarray(scores) for scores in array.T]
            else:
                columns.append(array if array.ndim == 1 else array.tolist())
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, self.answers, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.answers)

    def _ask(self, texts: list[bytes]) -> Mapping[str, np.ndarray]:
        array = np.empty(len(texts), object)
        array[:] = texts
        inputs = {self.input_name: array}
        outputs = self._client.predict(
            inputs, self._name, version=self.version, signature=self._signature_name
        )
        if self.__dict__.get("_probe", outputs).keys() != outputs.keys():
            raise Unknown(
                f"the server's answer: expected the outputs {sorted(self._probe)}; got "
                f"{sorted(outputs)}"
            )
        return outputs

    @cached_property
    def _probe(self) -> dict[str, np.ndarray]:
        """The answer to an empty text, which shows the forms of the outputs; labels first."""
        outputs = self._ask([b""])
        order = [name for name in _CLASSES if name in outputs]
        order += sorted(set(outputs) - set(order))
        return {name: outputs[name] for name in order}

    @cached_property
    def _columns(self) -> AnswerColumns | None:
        """The answer columns of a model of several labels, a number or a language; else None."""
        forms = {name: array.ndim for name, array in self._probe.items()}
        if forms == _LABELS and self._classes is not None:
            return answer_columns("labels", self._classes)
        if forms == _NUMBER and self._probe["quantiles"].shape[1] == len(BOUNDS):
            return answer_columns("number", ())
        if forms == _LIKELIHOOD:
            return answer_columns("likelihood", ())
        return None

    @cached_property
    def _classes(self) -> list[str] | None:
        """The names of the classes in the order of the scores; None if they are unknown.

        They come with the answers of the signature `classify`.
        """
        scores = self._probe.get("scores")
        if scores is None or scores.ndim != 2 or not self._has_classify:
            return None
        try:
            (row,) = self._client.classify(
                [{self.input_name: ""}], self._name, version=self.version, signature="classify"
            )
        except ServingError:  # it wants other features
            return None
        names = [name for name, _ in row]
        of_classes = [score for _, score in row]
        if len(set(names)) != scores.shape[1] or not np.allclose(of_classes, scores[0], atol=1e-4):
            return None
        return names

    def _digest_of_an_answer(self) -> str:
        digest = hashlib.sha256()
        for name, array in self._probe.items():
            values = array.tolist() if array.dtype == object else array.astype(str).tolist()
            digest.update(f"{name} {values}\n".encode())
        return digest.hexdigest()


class Texts:
    """N texts with estimated lengths, as only the model knows their number of steps."""

    def __init__(self, model: ServedModel, texts: pa.Array) -> None:
        self._model = model
        self._texts = text_column(texts)
        letters = pc.utf8_length(self._texts).to_numpy(zero_copy_only=False)
        self.lengths = letters.astype(np.int64) // _LETTERS_PER_STEP + 1

    def answer(self, rows: np.ndarray) -> pa.RecordBatch:
        """Return the server's answers to some of the texts."""
        texts = self._texts.take(pa.array(rows)).cast(pa.large_binary()).to_pylist()
        return self._model.answer(texts)


def _text_input(signature: Signature) -> str:
    names = [name for name, info in signature.inputs.items()]
    (kind, *_) = [by_number(info.dtype).name for info in signature.inputs.values()] or [""]
    if len(names) != 1 or kind != "string":
        raise FailedPrecondition(
            f"--data: expected a model that takes texts alone; this one takes {sorted(names)}"
        )
    return names[0]


def _arrow_type(name: str, dtype: np.dtype) -> pa.DataType:
    if dtype.kind == "O":
        return pa.string()
    try:
        return pa.from_numpy_dtype(dtype)
    except pa.ArrowException:
        raise FailedPrecondition(
            f"--data: output {name!r} of type {dtype} cannot be written to a table"
        ) from None


def _decoded(text: Any) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


USAGE_ERROR, INTERRUPTED = 2, 130


def score_file(arguments: argparse.Namespace, client: Client) -> int:
    """Send the rows of `arguments.data`, and write `arguments.output`.

    Returns:
        0; 2 where file or arguments cannot be used; 130 when interrupted.

    Raises:
        ServingError: The server's; what is answered by then is kept.
    """
    from rich.console import Console

    from gru_training.errors import InterruptedWork, TrainingError
    from gru_training.scoring.file_job import FileJob
    from gru_training.tables.text_columns import TEXT_COLUMNS

    if arguments.in_flight < 1:
        raise InvalidArgument(f"--in-flight: expected at least 1; got {arguments.in_flight}")
    console = Console(soft_wrap=True)
    errors = Console(stderr=True, soft_wrap=True)
    try:
        model = ServedModel(client, arguments)
        job = FileJob(
            Path(arguments.data),
            Path(arguments.output),
            {"text": (*TEXT_COLUMNS, model.input_name.lower())},
            columns={"text": arguments.text_column} if arguments.text_column else {},
            keep=None if arguments.keep is None else list(filter(None, arguments.keep.split(","))),
            overwrite=arguments.overwrite,
            console=console,
            given=text_format(arguments),
        )
        console.print(
            f"model   {safe_text(arguments.model)} version {model.version} at {client.url}",
            markup=False,
            highlight=False,
        )
        scored = job.run(model)
    except TrainingError as error:
        if arguments.debug:
            raise
        errors.print(f"gru-serve predict: {safe_text(error)}", markup=False, highlight=False)
        return USAGE_ERROR
    except InterruptedWork as stop:
        errors.print(f"gru-serve predict: {stop.message}", markup=False, highlight=False)
        return INTERRUPTED
    console.print(scored.summary(), highlight=False)
    console.print(f"output  {arguments.output}", markup=False, highlight=False)
    return 0
