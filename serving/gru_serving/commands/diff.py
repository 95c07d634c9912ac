"""`gru-serve diff`: how two versions differ, in signatures and in answers to golden requests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from gru_serving.commands.terminal import (
    command_parser,
    run_command,
    safe_json,
    safe_text,
    waiting,
)
from gru_serving.engine.golden import TOLERANCE, VerificationError
from gru_serving.release.diff import compare_versions
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
        found = compare_versions(old, new, arguments.tolerance)
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
