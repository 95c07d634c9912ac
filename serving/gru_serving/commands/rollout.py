"""`gru-serve promote`, `rollback` and `label`: move version labels on a running server."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from gru_serving.client import ClientOptions
from gru_serving.commands.connection_arguments import (
    add_connection_arguments,
    connect_as_told,
    connection_options,
    exit_status,
)
from gru_serving.commands.files.outcome_table import read_outcomes
from gru_serving.commands.terminal import NO_ANSWER, WRONG, command_parser, run_command, safe_text
from gru_serving.config.model_config_edit import RolloutError
from gru_serving.errors import InterfaceChangeError, InvalidArgument, ServingError
from gru_serving.release.gates import LiveGates, ShadowGate, VersionGates
from gru_serving.release.interface import ACCEPT_FLAG, ACCEPT_HELP, check_interface
from gru_serving.release.rollout import Rollout
from gru_serving.release.rollout_history import Move
from gru_serving.telemetry.metrics import DEFAULT_PATH

_GATES = ("golden", "latency", "shadow", "drift", "outcomes")
_LIVE_GATES = ("drift", "outcomes")


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --gate and its options."""
    group = parser.add_argument_group(
        "gates",
        "golden, latency and shadow are checked on the loaded version before the label moves. "
        "drift and outcomes are watched in the prediction log after it has moved; where one does "
        "not pass, or Ctrl-C ends the watch, the label is put back.",
    )
    group.add_argument(
        "--gate",
        action="append",
        default=[],
        choices=_GATES,
        dest="gates",
        help="golden: it answers as at export. latency: it is not slower. shadow: as a shadow of "
        "the version before, it has given the same answers. drift: nothing shifts "
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
        "--metrics",
        metavar="URL",
        help="for shadow: the server's page of metrics (default: that of --url, if it is for REST)",
    )
    for name, kind, default, metavar, what in (
        ("least-compared", int, 1000, "N", "compared requests needed to judge"),
        ("most-disagreed", float, 0.01, "SHARE", "share of them with another answer"),
        ("most-failed", float, 0.001, "SHARE", "share of requests that it did not answer"),
    ):
        group.add_argument(
            f"--{name}",
            type=kind,
            default=default,
            metavar=metavar,
            help=f"for shadow: {what} (default: %(default)s)",
        )
    group.add_argument(
        "--most-shadow-latency",
        type=float,
        metavar="TIMES",
        help="for shadow: median time of a run, over that of the version before (default: any)",
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
    """Refuse versions without something that clients of the previous versions rely on.

    Args:
        rollout: The model and its server.
        labels: The version that each label is to point to; None removes the label.

    Raises:
        InterfaceChangeError: A version breaks its clients.
    """
    before, unlabelled, found = rollout.labels(), rollout.unlabelled(), rollout.versions()
    for label, version in labels.items():
        old = before.get(label, unlabelled)
        if version is None or old in (None, version):
            continue
        if version not in found or old not in found:
            rollout.say(f"versions {old} and {version} are not both on this disk to be compared")
            continue
        try:
            check_interface(found[old], found[version])
        except InterfaceChangeError as error:
            prefix = f"label {safe_text(label)}, version {version}"
            raise InterfaceChangeError(f"{prefix}: {error}") from None


def promotion(
    rollout: Rollout, arguments: argparse.Namespace, label: str, version: int
) -> list[Move]:
    """Move a label as the arguments say.

    Raises:
        InvalidArgument: Gates without what they need.
        RolloutError: The move is impossible, or a gate did not pass; the label is where it was.
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
    asked: list[VersionGates | ShadowGate] = [gates] if gates != VersionGates() else []
    if "shadow" in arguments.gates:
        asked.append(_shadow(arguments))
    unchecked = rollout

    def check(moves: Sequence[Move]) -> None:
        for gate in asked:
            gate.check(unchecked, moves)

    rollout = replace(rollout, check=check)
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


def _shadow(arguments: argparse.Namespace) -> ShadowGate:
    url = arguments.metrics
    if url is None and arguments.url.startswith(("http://", "https://")):
        url = arguments.url.rstrip("/") + DEFAULT_PATH
    if url is None or not url.startswith(("http://", "https://")):
        raise InvalidArgument(
            "--gate shadow: expected --metrics, the URL of the server's page of metrics, such as "
            f"http://localhost:8501{DEFAULT_PATH}; got {url!r}"
        )
    if arguments.least_compared < 1 or not (
        0 <= arguments.most_disagreed <= 1 and 0 <= arguments.most_failed <= 1
    ):
        raise InvalidArgument(
            "--least-compared: expected a number from 1; --most-disagreed and --most-failed: "
            "shares from 0 to 1"
        )

    def read_page() -> str:
        # aiohttp is slow to import.
        from gru_serving.client.rest.client import RestMessage
        from gru_serving.client.rest.connection import RestConnection

        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.netloc}"
        options = ClientOptions(**connection_options(arguments))
        with closing(RestConnection(server, options)) as connection:
            message = RestMessage("GET", parts.path or DEFAULT_PATH)
            return connection.send(message, arguments.timeout).decode("utf-8", "replace")

    return ShadowGate(
        read_page,
        arguments.least_compared,
        arguments.most_disagreed,
        arguments.most_failed,
        arguments.most_shadow_latency,
    )


def _live(arguments: argparse.Namespace) -> LiveGates | None:
    asked = [gate for gate in _LIVE_GATES if gate in arguments.gates]
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


_LABELS_HELP = """
Labels live in the model config file of the server (--model_config_file). The commands rewrite it
in the order that TensorFlow Serving demands: first the new version is asked for and loaded, then
the label moves; if the version does not load, the file is put back. Over gRPC the server is told
to reload the file; over REST it has to poll it (--model_config_file_poll_wait_seconds).
Clients ask for a label:  gru-serve predict --model sentiment --label stable "a fine film"
or POST /v1/models/sentiment/labels/stable:predict.

exit status: 0 done; 1 the new version does not load or the server refuses; 2 wrong arguments or
files; 3 the server gives no usable answer
"""


def promote(argv: Sequence[str]) -> int:
    """Point a label to a newer version."""
    parser = _parser(
        "promote",
        "Point a label of a server, stable by default, to a version, the newest by default. The "
        "version that the label leaves stays loaded, so that a rollback takes no time; unlabelled "
        "versions below it stop being served.",
        """examples:
  gru-serve promote --config models.config --model sentiment --url grpc://localhost:8500
  gru-serve promote --config models.config --model sentiment --to 4 --url grpc://localhost:8500
  gru-serve promote --config models.config --model sentiment --from canary   # what canary is
  gru-serve promote --config models.config --model sentiment --gate golden --gate latency
  gru-serve promote --config models.config --model sentiment --gate golden --gate drift \\
      --logs logs --watch 600        # put back where a gate does not pass
  gru-serve promote --config models.config --model sentiment --gate shadow \\
      --url grpc://localhost:8500 \\
      --metrics http://localhost:8501/monitoring/prometheus/metrics
""",
    )
    parser.add_argument("--label", default="stable", help="label to move (default: stable)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--to", type=int, metavar="VERSION", help="version to point to (default: the newest)"
    )
    which.add_argument(
        "--from", dest="source", metavar="LABEL", help="point to the version of this label"
    )
    parser.add_argument(ACCEPT_FLAG, action="store_true", help=ACCEPT_HELP)
    add_gate_arguments(parser)
    _add_server_arguments(parser)

    def moves(rollout: Rollout, arguments: argparse.Namespace) -> list[Move]:
        version = arguments.to
        if arguments.source is not None:
            labels = rollout.labels()
            if arguments.source not in labels:
                raise RolloutError(
                    f"--from: expected one of the labels {sorted(labels)}; got {arguments.source!r}"
                )
            version = labels[arguments.source]
        if version is None:
            version = rollout.newest()
        return promotion(rollout, arguments, arguments.label, version)

    return _run("promote", parser, argv, moves)


def rollback(argv: Sequence[str]) -> int:
    """Point a label back to where it was."""
    parser = _parser(
        "rollback",
        "Point a label of a server, stable by default, back to the version that it had before its "
        "last promotion, as recorded in the history next to the config file. A second rollback "
        "goes back one more version.",
        """examples:
  gru-serve rollback --config models.config --model sentiment --url grpc://localhost:8500
  gru-serve rollback --config models.config --model sentiment --to 2 --url grpc://localhost:8500
""",
    )
    parser.add_argument("--label", default="stable", help="label to move (default: stable)")
    parser.add_argument(
        "--to",
        type=int,
        metavar="VERSION",
        help="version to go back to (default: the one before the last promotion)",
    )
    _add_server_arguments(parser)

    def moves(rollout: Rollout, arguments: argparse.Namespace) -> list[Move]:
        version = arguments.to
        if version is None:
            version = rollout.before(arguments.label)
        moves = rollout.move({arguments.label: version}, "rollback", retire=False)
        unlabelled = rollout.unlabelled()
        if unlabelled != version:
            rollout.say(
                f"requests without label or version still go to version {unlabelled}, the highest "
                f"that serves; to end that, take it out of model_version_policy in {rollout.path}"
            )
        return moves

    return _run("rollback", parser, argv, moves)


def label(argv: Sequence[str]) -> int:
    """Set and remove labels."""
    parser = _parser(
        "label",
        "Show, set or remove the version labels of a server. A version is loaded before a label "
        "points to it.",
        """examples:
  gru-serve label --config models.config --model sentiment          # show
  gru-serve label --config models.config --model sentiment stable=3 canary=4 \\
      --url grpc://localhost:8500
  gru-serve label --config models.config --model sentiment --remove canary \\
      --url grpc://localhost:8500
""",
    )
    parser.add_argument(
        "labels",
        nargs="*",
        metavar="LABEL=VERSION",
        help="labels to set, such as stable=3 (default: show all labels)",
    )
    parser.add_argument(
        "--remove",
        action="append",
        default=[],
        metavar="LABEL",
        help="label to remove; can be given several times",
    )
    parser.add_argument(ACCEPT_FLAG, action="store_true", help=ACCEPT_HELP)
    _add_server_arguments(parser)

    def moves(rollout: Rollout, arguments: argparse.Namespace) -> list[Move]:
        wanted: dict[str, int | None] = dict.fromkeys(arguments.remove)
        for text in arguments.labels:
            name, _, number = text.partition("=")
            if not name or not number.isdecimal():
                raise InvalidArgument(f"expected LABEL=VERSION, as stable=3; got {text!r}")
            wanted[name] = int(number)
        missing = [name for name in arguments.remove if name not in rollout.labels()]
        if missing:
            raise RolloutError(
                f"--remove: expected one of the labels {sorted(rollout.labels())}; "
                f"got {missing[0]!r}"
            )
        if not wanted:
            for name, version in sorted(rollout.labels().items()):
                print(f"{safe_text(name)} = {version}")
            return []
        if not arguments.allow_interface_change:
            check_interfaces(rollout, wanted)
        return rollout.move(wanted, "label", retire=False)

    return _run("label", parser, argv, moves)


def _parser(command: str, description: str, examples: str) -> argparse.ArgumentParser:
    parser = command_parser(command, description, examples + _LABELS_HELP)
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="model config file of the server"
    )
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="name of the model in that file"
    )
    return parser


def _add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the loading time, the options for moving without a server, and the connection."""
    parser.add_argument(
        "--wait",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="time for loading a version (default: %(default)g)",
    )
    parser.add_argument(
        "--offline", action="store_true", help="write the file only: the server is not running"
    )
    add_connection_arguments(parser, "grpc://localhost:8500")


def _run(
    command: str,
    parser: argparse.ArgumentParser,
    argv: Sequence[str],
    moves: Callable[[Rollout, argparse.Namespace], list[Move]],
) -> int:
    def say(text: str) -> None:
        print(f"{parser.prog}: {safe_text(text)}", file=sys.stderr)

    def work(arguments: argparse.Namespace) -> int:
        connection = nullcontext() if arguments.offline else connect_as_told(arguments)
        with connection as server:
            path = arguments.config.resolve()
            done = moves(Rollout(path, arguments.model, server, arguments.wait, say), arguments)
        for move in done:
            before = "nothing" if move.before is None else move.before
            after = "nothing" if move.after is None else move.after
            print(f"{arguments.model}: {safe_text(move.label)} {before} -> {after}")
        if not done and (command != "label" or arguments.labels):
            print(f"{arguments.model}: nothing to change")
        return 0

    return run_command(parser, argv, work, _status, (InterfaceChangeError, RolloutError))


def _status(error: Exception) -> int:
    if not isinstance(error, InterfaceChangeError | RolloutError):
        return exit_status(error)
    cause = error.__cause__
    silent = isinstance(cause, ServingError) and exit_status(cause) == NO_ANSWER
    return NO_ANSWER if silent else WRONG
