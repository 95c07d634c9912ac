"""Golden requests: requests that the Keras model answered at export, with its answers.

`assets.extra/golden.json` of a version holds a list of requests::

    [{"method": "predict", "signature_name": "serving_default",
      "inputs": {"text": ["…"]}, "outputs": {"label": ["…"], "scores": [[…]]}},
     {"method": "classify", "signature_name": "classify",
      "examples": [{"text": "…"}], "outputs": {"classes": [[…]], "scores": [[…]]}}]
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gru_serving.codecs.json_predict import read_json
from gru_serving.errors import ServingError

GOLDEN = Path("assets.extra") / "golden.json"
TOLERANCE = 1e-5

Arrays = dict[str, npt.NDArray[Any]]
Request = dict[str, Any]
Engine = Callable[[Request], Mapping[str, npt.NDArray[Any]]]


class VerificationError(Exception):
    """There are no golden requests to replay."""


class WrongAnswerError(VerificationError):
    """An engine's answer differs from the golden one."""


class Verdict(NamedTuple):
    """Outcome of a replay.

    Attributes:
        requests: Number of requests asked.
        rows: Number of rows in all of them.
        largest_difference: Largest difference between numbers.
        by_signature: The largest difference by signature name.
    """

    requests: int
    rows: int
    largest_difference: float
    by_signature: Mapping[str, float]


def read_golden(version: Path) -> list[Request]:
    """Read the golden requests of a version directory.

    Raises:
        VerificationError: The version has no golden requests, or the file is not what `export`
            writes.
    """
    path = version / GOLDEN
    try:
        golden = read_json(path.read_text("utf-8"))
    except OSError as error:
        raise VerificationError(
            f"{path}: cannot be read ({error.strerror}); expected the directory of a version "
            "that `export` wrote"
        ) from error
    except ValueError as error:
        raise VerificationError(f"{path}: expected JSON, got {error}") from error
    if not isinstance(golden, list) or not golden:
        raise VerificationError(
            f"{path}: expected a non-empty list of requests; got {golden!r:.60}"
        )
    for i, request in enumerate(golden):
        method = request.get("method", "predict") if isinstance(request, dict) else None
        sent = "inputs" if method == "predict" else "examples"
        keys = {"signature_name", "outputs", sent}
        if method not in ("predict", "classify", "regress") or not keys <= request.keys():
            raise VerificationError(
                f"{path}: request {i} must have the keys {sorted(keys)} and a method among "
                "predict, classify and regress"
            )
        kinds = {sent: dict if method == "predict" else list, "outputs": dict}
        for key, kind in kinds.items():
            if not isinstance(request[key], kind) or not request[key]:
                raise VerificationError(
                    f"{path}: request {i}: expected {key} to be a {kind.__name__} with something "
                    f"in it; got {request[key]!r:.60}"
                )
        _check_values(f"{path}: request {i}", request)
    return golden


def _check_values(where: str, request: Request) -> None:
    name = request["signature_name"]
    if not isinstance(name, str):
        raise VerificationError(
            f"{where}: expected signature_name to be a string; got {name!r:.60}"
        )
    for alias, values in request["outputs"].items():
        try:
            if values is None:  # NumPy takes it for a number that is none
                raise TypeError("null")
            to_array(values)
        except (TypeError, ValueError, OverflowError):
            raise VerificationError(
                f"{where}: output {alias!r}: expected lists of equal length, of numbers or of "
                f"strings; got {values!r:.60}"
            ) from None
    for alias, values in request.get("inputs", {}).items():
        if not isinstance(values, list):
            raise VerificationError(
                f"{where}: input {alias!r}: expected a list of rows; got {values!r:.60}"
            )


def write_golden(version: Path, golden: Sequence[Request]) -> None:
    """Write the golden requests of a version directory, one per line."""
    lines = ",\n".join(json.dumps(request, ensure_ascii=False) for request in golden)
    (version / GOLDEN).parent.mkdir(exist_ok=True)
    (version / GOLDEN).write_text(f"[{lines}]\n", "utf-8")


def replay(golden: Sequence[Request], ask: Engine, tolerance: float = TOLERANCE) -> Verdict:
    """Send every golden request again, and compare the answers.

    Args:
        golden: Golden requests, from `read_golden`.
        ask: An engine.
        tolerance: Largest difference allowed between numbers; of an output with numbers beyond
            1, as in raw units, relative to the largest of them.

    Raises:
        WrongAnswerError: An answer differs; the message names its request, output and row.
        ValueError: The tolerance is negative or NaN.
    """
    check_tolerance(tolerance)
    largest: dict[str, float] = {}
    rows = 0
    for number, request in enumerate(golden):
        answers = ask(request)
        signature = request["signature_name"]
        for name, values in request["outputs"].items():
            where = f"request {number} ({signature}), output {name!r}"
            if name not in answers:
                raise WrongAnswerError(f"{where}: missing; got {sorted(answers)}")
            wanted, got = to_array(values), answers[name]
            if wanted.shape != got.shape:
                raise WrongAnswerError(f"{where}: expected shape {wanted.shape}, got {got.shape}")
            differing, gap = compare(wanted, got, tolerance)
            if differing.any():
                row = int(np.argwhere(differing)[0][0])
                shown = (_short(side[row]) for side in (wanted, got))
                raise WrongAnswerError(
                    f"{where}, row {row}: expected {next(shown)} within {tolerance:g}, "
                    f"got {next(shown)}"
                )
            largest[signature] = max(largest.get(signature, 0.0), float(gap.max(initial=0)))
        rows += row_count(request)
    return Verdict(len(golden), rows, max(largest.values(), default=0.0), largest)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Name the request in the errors raised inside the context."""
    try:
        yield
    except ServingError as error:
        error.message = f"{what}: {error.message}"
        raise


def check_tolerance(tolerance: float) -> None:
    """Check that a number is a tolerance for comparing numbers.

    Raises:
        ValueError: The tolerance is negative or NaN.
    """
    if not tolerance >= 0:  # NaN is not
        raise ValueError(f"tolerance: expected a number from 0; got {tolerance}")


def row_count(request: Request) -> int:
    """Count the rows of a request."""
    if "examples" in request:
        return len(request["examples"])
    return len(next(iter(request["inputs"].values())))


def to_array(values: Any) -> npt.NDArray[Any]:
    """Convert JSON values to an array: strings to bytes objects, numbers to float64."""
    array = np.asarray(values)
    if array.dtype.kind == "U":
        return np.asarray([text.encode() for text in array.ravel()], object).reshape(array.shape)
    return array.astype(np.float64)


def classified(rows: Sequence[Sequence[tuple[str, float]]]) -> Arrays:
    """Convert the answer to Classify to the form of golden outputs."""
    return {
        "classes": to_array([[label for label, _ in row] for row in rows]),
        "scores": np.array([[score for _, score in row] for row in rows], np.float32),
    }


def local_engine(predictor: Any) -> Engine:
    """Load a `gru_serving.engine.predictor.Predictor` in this process."""
    from gru_serving.codecs.coerce import coerce
    from gru_serving.codecs.example import encode_input, example_values
    from gru_serving.codecs.tensor_proto import decode_input
    from gru_serving.engine.examples import classify, regress

    def ask(request: Request) -> Mapping[str, npt.NDArray[Any]]:
        name = request["signature_name"]
        method = request.get("method", "predict")
        if method == "predict":
            inputs = coerce(request["inputs"], predictor.find_signature(name))
            outputs: Arrays = predictor.predict(inputs, name)
            return outputs
        examples = decode_input(encode_input(example_values(request["examples"])))
        if method == "classify":
            return classify(predictor, name, examples).run().arrays()
        return {"outputs": regress(predictor, name, examples).run()}

    return ask


def compare(
    wanted: npt.NDArray[Any], got: npt.NDArray[Any], tolerance: float
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Compare two arrays of one shape.

    Args:
        wanted: Array of texts (object) or numbers.
        got: Array of the same shape.
        tolerance: Largest difference of numbers that count as equal, as in `replay`.

    Returns:
        Whether each element differs, and by how much; texts by nothing.
    """
    if wanted.dtype.kind == "O" or got.dtype.kind == "O":
        return np.asarray(wanted != got), np.zeros(wanted.shape)
    gap = difference(wanted, got)
    return ~(gap <= tolerance), gap


def difference(wanted: npt.NDArray[Any], got: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Measure the difference of numbers, relative to the largest expected one if that exceeds 1."""
    wanted = wanted.astype(np.float64)
    gap: npt.NDArray[Any] = np.abs(wanted - got.astype(np.float64))
    return gap / max(1.0, float(np.abs(wanted).max(initial=0)))


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return np.array2string(value, precision=7, threshold=8, edgeitems=3)
    return repr(value)
