"""Replay a model's golden requests: the answers of the Keras model at export, asked again.

`assets.extra/golden.json` of a version holds a list of requests::

    [{"signature_name": "serving_default", "inputs": {"text": ["…"]},
      "outputs": {"label": ["…"], "scores": [[…]]}}]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from serving.coerce import coerce
from serving.errors import ServingError
from serving.quiet import quiet_stderr

GOLDEN = Path("assets.extra") / "golden.json"
TOLERANCE = 1e-5

Arrays = dict[str, npt.NDArray[Any]]
Predict = Callable[[str, dict[str, Any]], Arrays]


class VerificationError(Exception):
    """There are no golden requests to replay."""


class WrongAnswerError(VerificationError):
    """An engine's answer differs from the golden one."""


class Verdict(NamedTuple):
    """Outcome of a replay."""

    requests: int
    rows: int
    largest_difference: float


def read_golden(version: Path) -> list[dict[str, Any]]:
    """The golden requests of a version directory.

    Raises:
        VerificationError: there are none, or the file is not what `export` writes.
    """
    path = version / GOLDEN
    try:
        golden = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise VerificationError(
            f"{path}: cannot be read ({error.strerror}); expected the directory of a version "
            "that `export` wrote"
        ) from error
    except ValueError as error:
        raise VerificationError(f"{path}: expected JSON, got {error}") from error
    keys = {"signature_name", "inputs", "outputs"}
    if not isinstance(golden, list) or not golden:
        raise VerificationError(f"{path}: expected a list of requests, got {type(golden).__name__}")
    for i, request in enumerate(golden):
        if not isinstance(request, dict) or not keys <= request.keys():
            raise VerificationError(f"{path}: request {i} must have the keys {sorted(keys)}")
    return golden


def replay(golden: list[dict[str, Any]], predict: Predict, tolerance: float = TOLERANCE) -> Verdict:
    """Ask every golden request again.

    Args:
        golden: what `read_golden` returns.
        predict: an engine: signature name and inputs, as JSON has them, to outputs.
        tolerance: largest absolute difference allowed between numbers.

    Raises:
        WrongAnswerError: names the request, output and row of the first answer that differs.
    """
    largest, rows = 0.0, 0
    for number, request in enumerate(golden):
        inputs = request["inputs"]
        answers = predict(request["signature_name"], inputs)
        for name, values in request["outputs"].items():
            where = f"request {number}, output {name!r}"
            if name not in answers:
                raise WrongAnswerError(f"{where}: missing; got {sorted(answers)}")
            wanted, got = to_array(values), answers[name]
            if wanted.shape != got.shape:
                raise WrongAnswerError(f"{where}: expected shape {wanted.shape}, got {got.shape}")
            if wanted.dtype.kind == "O":
                differing = wanted != got
                difference = 0.0
            else:
                gap = np.abs(wanted - got.astype(np.float64))
                differing = ~(gap <= tolerance)
                difference = float(gap.max(initial=0))
            if differing.any():
                row = int(np.argwhere(differing)[0][0])
                raise WrongAnswerError(
                    f"{where}, row {row}: expected {wanted[row]!r} within {tolerance:g}, "
                    f"got {got[row]!r}"
                )
            largest = max(largest, difference)
        rows += len(next(iter(inputs.values())))
    return Verdict(len(golden), rows, largest)


def main(argv: list[str]) -> int:
    """`python -m serving verify VERSION`; returns the exit status, 1 for a wrong answer."""
    parser = argparse.ArgumentParser(
        prog="gru-serve verify",
        description="Load one version of an exported model and compare its answers with those "
        "that the Keras model gave at export.",
        epilog="example: gru-serve verify models/sentiment/1",
    )
    parser.add_argument("version", type=Path, metavar="VERSION", help="directory of the version")
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, help="largest difference (%(default)g)"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    arguments = parser.parse_args(argv)
    try:
        golden = read_golden(arguments.version)
        with quiet_stderr():
            from serving.predictor import Predictor
        predictor = Predictor(arguments.version)

        def predict(name: str, inputs: dict[str, Any]) -> Arrays:
            return predictor.predict(coerce(inputs, predictor.find_signature(name)), name)

        verdict = replay(golden, predict, arguments.tolerance)
    except (VerificationError, ServingError) as error:
        if arguments.debug:
            raise
        print(f"gru-serve verify: {error}", file=sys.stderr)
        return 1 if isinstance(error, WrongAnswerError) else 2
    print(
        f"{arguments.version}: {verdict.requests} requests with {verdict.rows} rows answered as at "
        f"export; largest difference {verdict.largest_difference:.1e}"
    )
    return 0


def to_array(values: Any) -> npt.NDArray[Any]:
    """JSON values as an array: strings as bytes objects, numbers as float64."""
    array = np.asarray(values)
    if array.dtype.kind == "U":
        return np.asarray([text.encode() for text in array.ravel()], object).reshape(array.shape)
    return array.astype(np.float64)
