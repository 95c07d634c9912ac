"""`gru-serve promote --gate ...`: promotions that are checked, watched and put back."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gru_serving.commands.files.outcome_table import read_outcomes
from gru_serving.config.model_config_edit import RolloutError
from gru_serving.errors import InvalidArgument
from gru_serving.release.interface import InterfaceChangeError, check_interface
from gru_serving.release.live_gates import LiveGates
from gru_serving.release.rollout import Rollout
from gru_serving.release.rollout_history import Move
from gru_serving.release.version_gates import VersionGates

_GATES = ("golden", "latency", "drift", "outcomes")
_LIVE = ("drift", "outcomes")


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --gate and what belongs to it."""
    group = parser.add_argument_group(
        "gates",
        "golden and latency are checked on the loaded version before the label moves. drift and "
        "outcomes are watched in the prediction log after it has moved; where one does not pass, "
        "or Ctrl-C ends the watch, the label is put back.",
    )
    group.add_argument(
        "--gate",
        action="append",
        default=[],
        choices=_GATES,
        dest="gates",
        help="golden: it answers as at export. latency: it is not slower. drift: nothing shifts "
        "that had not with the version before. outcomes: enough answers are right",
    )
    group.add_argument(
        "--most-latency",
        type=float,
        default=1.5,
        metavar="TIMES",
        help="for latency: time of a golden request, over that of the version before (default: "
        "%(default)s)",
    )
    group.add_argument(
        "--logs", type=Path, metavar="DIR", help="for drift and outcomes: the server's log"
    )
    group.add_argument(
        "--watch",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="for drift and outcomes: how long (default: %(default)g)",
    )
    group.add_argument(
        "--least-rows",
        type=int,
        default=200,
        metavar="N",
        help="for drift and outcomes: logged rows needed to judge (default: %(default)s)",
    )
    group.add_argument(
        "--outcomes", type=Path, metavar="FILE", help="for outcomes: a table of texts and labels"
    )
    group.add_argument(
        "--least-accuracy",
        type=float,
        metavar="SHARE",
        help="for outcomes: share of answers that must be right, as 0.9",
    )


def check_interfaces(rollout: Rollout, labels: Mapping[str, int | None]) -> None:
    """Refuse versions that break what clients of the versions before them rely on.

    Args:
        rollout: The model and its server.
        labels: The version that each label is to point to; None removes the label.

    Raises:
        RolloutError: A version breaks its clients.
    """
    before = rollout.labels()
    for label, version in labels.items():
        old = before.get(label, rollout.unlabelled())
        if version is None or old in (None, version):
            continue
        found = rollout.versions()
        if version not in found or old not in found:
            rollout.say(f"versions {old} and {version} are not both on this disk to be compared")
            continue
        try:
            check_interface(found[old], found[version])
        except InterfaceChangeError as error:
            raise RolloutError(f"label {label}, version {version}: {error}") from error


def promotion(
    rollout: Rollout, arguments: argparse.Namespace, label: str, version: int
) -> list[Move]:
    """Move a label as the arguments say.

    Raises:
        InvalidArgument: Gates without what they need.
        RolloutError: It cannot be done, or a gate did not pass; the label is where it was.
    """
    live = _live(arguments)
    if arguments.gates and rollout.server is None:
        raise InvalidArgument("--gate: expected a running server; got --offline")
    if not arguments.allow_interface_change:
        check_interfaces(rollout, {label: version})
    gates = VersionGates(
        "golden" in arguments.gates,
        arguments.most_latency if "latency" in arguments.gates else None,
    )
    if gates != VersionGates():
        rollout = replace(rollout, check=lambda moves: gates.check(rollout, moves))
    if live is None:
        return rollout.move({label: version}, "promote", retire=True)
    known = live.known(rollout, label)
    moves = rollout.move({label: version}, "promote", retire=True)
    for move in moves:
        _watch(rollout, live, move, known)
    return moves


def _watch(rollout: Rollout, live: LiveGates, move: Move, known: frozenset[str]) -> None:
    try:
        live.watch(rollout, move, known)
    except BaseException:
        rollout.move({move.label: move.before}, "rollback", retire=False)
        back = "removed" if move.before is None else f"back at version {move.before}"
        rollout.say(f"label {move.label} is {back}")
        raise


def _live(arguments: argparse.Namespace) -> LiveGates | None:
    asked = [gate for gate in _LIVE if gate in arguments.gates]
    if not asked:
        return None
    if arguments.logs is None:
        raise InvalidArgument(
            f"--gate {asked[0]}: expected --logs, the server's --prediction_log_directory"
        )
    if not arguments.watch > 0 or arguments.least_rows < 1:
        raise InvalidArgument("--watch and --least-rows: expected numbers above 0")
    outcomes, least = {}, None
    if "outcomes" in asked:
        if arguments.outcomes is None or arguments.least_accuracy is None:
            raise InvalidArgument("--gate outcomes: expected --outcomes and --least-accuracy")
        outcomes, least = read_outcomes(arguments.outcomes), arguments.least_accuracy
    return LiveGates(
        arguments.logs, arguments.watch, arguments.least_rows, "drift" in asked, least, outcomes
    )
