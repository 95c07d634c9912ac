"""`gru-serve diff`: how two versions differ, in signatures and in answers to golden requests."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gru_serving.codecs.signature import Signature
from gru_serving.commands.terminal import (
    command_parser,
    run_command,
    safe_json,
    safe_text,
    waiting,
)
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
from gru_serving.engine.imports import import_tensorflow, quiet_stderr
from gru_serving.errors import ServingError
from gru_serving.release.interface import changed_promises, read_promises
from gru_serving.storage.publishing import find_version

_Array = npt.NDArray[Any]

_EXAMPLES = """examples:
  gru-serve diff models/tickets/1 staging/tickets
  gru-serve diff models/tickets/1 staging/tickets/1 --json

Both versions answer the golden requests of both. A signature whose inputs differ (such as a
step with another state) is named and not compared.

exit status: 0 all answers equal within the tolerance; 1 they differ; 2 nothing could be compared
"""


def main(argv: Sequence[str]) -> int:
    """Compare two versions; returns the exit status, as described in the help."""
    parser = command_parser(
        "diff",
        "Compare the signatures of two versions, and their answers to the golden requests of both.",
        _EXAMPLES,
    )
    for name, which in (("old", "the older version"), ("new", "the newer one")):
        parser.add_argument(
            name,
            type=Path,
            metavar=name.upper(),
            help=f"{which}; a base path stands for its highest",
        )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        help="largest difference that counts as equal (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return run_command(parser, argv, _compare, errors=(VerificationError,))


def _compare(arguments: argparse.Namespace) -> int:
    old, new = find_version(arguments.old), find_version(arguments.new)
    with waiting(f"loading {old} and {new}, and asking them"):
        found = _compare_versions(old, new, arguments.tolerance)
    if arguments.json:
        print(safe_json(json.dumps(found, ensure_ascii=False, indent=1)))
    else:
        _print(old, new, found)
    return 1 if found["signatures"] or any(o["differing"] for o in found["outputs"]) else 0


def _print(old: Path, new: Path, found: dict[str, Any]) -> None:
    print(f"old {old}\nnew {new}")
    for sentence in found["signatures"]:
        print(f"  {safe_text(sentence)}")
    print(
        f"\n{'signature':<16} {'output':<14} {'values':>8} {'differ':>8} {'largest':>9} {'mean':>9}"
    )
    for one in found["outputs"]:
        shown = f"{one['signature']:<16} {one['output']:<14} {one['values']:>8,} "
        shown += f"{one['differing']:>8,} "
        figures = f"{one['largest']:>9.1e} {one['mean']:>9.1e}"
        print(safe_text(shown) + ("   other shape" if one["shapes_differ"] else figures))
    if found["changed"]:
        print("\nanswers that changed (the first):")
    for one in found["changed"]:
        print(safe_text(f"  {one['old']} -> {one['new']}: {str(one['input'])[:90]}"))


def _compare_versions(old: Path, new: Path, tolerance: float) -> dict[str, Any]:
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
