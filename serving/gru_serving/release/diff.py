"""The differences between two versions: signatures, and answers to the golden requests of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gru_serving.codecs.signature import Signature
from gru_serving.engine.golden import (
    TOLERANCE,
    Request,
    VerificationError,
    check_tolerance,
    compare,
    local_engine,
    naming,
    read_golden,
    row_count,
)
from gru_serving.engine.imports import quiet_stderr
from gru_serving.errors import ServingError
from gru_serving.release.interface import changed_promises, read_promises

_Array = npt.NDArray[Any]


def compare_versions(old: Path, new: Path, tolerance: float = TOLERANCE) -> dict[str, Any]:
    """Compare two versions.

    Args:
        old: Directory of one version.
        new: Directory of the other version.
        tolerance: Largest difference of numbers that count as equal, as in
            `gru_serving.engine.golden.replay`.

    Returns:
        `signatures`: differences of signatures, classes and columns, as sentences; `outputs`: per
        signature and output the number of values, how many differ, whether shapes do, the largest
        and the mean difference; `changed`: the first rows whose text outputs differ.

    Raises:
        ServingError: A version does not load.
        VerificationError: Neither has golden requests, or a file of them is broken.
        ValueError: The tolerance is negative or NaN.
    """
    check_tolerance(tolerance)
    golden = [request for version in (old, new) for request in _golden_if_any(version)]
    if not golden:
        raise VerificationError(f"neither {old} nor {new} has golden requests")
    from gru_serving.engine.imports import import_tensorflow
    from gru_serving.engine.predictor import Predictor

    with quiet_stderr():
        import_tensorflow()
    sides = []
    for version in (old, new):
        with naming(str(version)):
            sides.append(Predictor(version))
    differences = changed_promises(read_promises(old), read_promises(new))
    said, comparable = _compare_signatures(sides[0].signatures, sides[1].signatures)
    differences += said
    tally: dict[tuple[str, str], _Tally] = {}
    changed: list[dict[str, Any]] = []
    seen: set[str] = set()
    for request in golden:
        asked = json.dumps({k: v for k, v in request.items() if k != "outputs"}, sort_keys=True)
        if request["signature_name"] not in comparable or asked in seen:
            continue
        seen.add(asked)
        try:
            answers = [local_engine(side)(request) for side in sides]
        except ServingError as error:  # such as a label that the other version does not know
            name = request["signature_name"]
            refused = f"{name}: one version refuses a request of the other: {error.message}"
            differences += [refused] * (refused not in differences)
            continue
        _compare_answers(request, answers, tolerance, tally, changed)
    for side in sides:
        side.close()
    outputs = [
        {"signature": signature, "output": output, **one.described()}
        for (signature, output), one in sorted(tally.items())
    ]
    return {"signatures": differences, "outputs": outputs, "changed": changed}


class _Tally:
    """Differences of one output."""

    def __init__(self) -> None:
        self.values = self.differing = 0
        self.shapes_differ = False
        self.largest = self.total = 0.0

    def add(
        self, old: npt.NDArray[Any], new: npt.NDArray[Any], tolerance: float
    ) -> npt.NDArray[Any]:
        """Count the differences; returns where the two differ."""
        self.values += old.size
        if old.shape != new.shape:
            self.differing += old.size
            self.shapes_differ = True
            return np.ones(old.shape, bool)
        differing, gap = compare(old, new, tolerance)
        self.largest = max(self.largest, float(gap.max(initial=0)))
        self.total += float(gap.sum())
        self.differing += int(differing.sum())
        return differing

    def described(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "values": self.values,
            "differing": self.differing,
            "shapes_differ": self.shapes_differ,
            "largest": self.largest,
            "mean": self.total / max(1, self.values),
        }


def _golden_if_any(version: Path) -> list[Request]:
    try:
        return read_golden(version)
    except VerificationError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return []
        raise


def _compare_signatures(
    old: Mapping[str, Signature], new: Mapping[str, Signature]
) -> tuple[list[str], set[str]]:
    """List the differences, and the names of the signatures with the same requests."""
    names = [{name for name in side if not name.startswith("__")} for side in (old, new)]
    said = [f"{name}: only in the old version" for name in sorted(names[0] - names[1])]
    said += [f"{name}: only in the new version" for name in sorted(names[1] - names[0])]
    comparable = set()
    for name in sorted(names[0] & names[1]):
        for side in ("inputs", "outputs"):
            before, after = (
                {alias: (info.dtype, info.shape) for alias, info in getattr(one, side).items()}
                for one in (old[name], new[name])
            )
            if before != after:
                aliases = sorted(
                    a for a in before.keys() | after.keys() if before.get(a) != after.get(a)
                )
                said.append(f"{name}: {side} differ in {', '.join(aliases)}")
            elif side == "inputs":
                comparable.add(name)
    return said, comparable


def _compare_answers(
    request: Request,
    answers: Sequence[Mapping[str, _Array]],
    tolerance: float,
    tally: dict[tuple[str, str], _Tally],
    changed: list[dict[str, Any]],
) -> None:
    signature = request["signature_name"]
    old, new = answers
    for name in sorted(old.keys() & new.keys()):
        one = tally.setdefault((signature, name), _Tally())
        differing = one.add(old[name], new[name], tolerance)
        if old[name].dtype != object or old[name].ndim != 1 or old[name].shape != new[name].shape:
            continue
        for row in np.flatnonzero(differing):
            asked = request.get("examples") or next(iter(request["inputs"].values()))
            if len(changed) < 20 and row < row_count(request):
                changed.append(
                    {
                        "signature": signature,
                        "output": name,
                        "input": asked[row],
                        "old": old[name][row].decode("utf-8", "replace"),
                        "new": new[name][row].decode("utf-8", "replace"),
                    }
                )
