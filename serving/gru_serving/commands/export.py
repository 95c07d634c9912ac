"""`gru-serve export`: the command line of `gru_serving.export.run`."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from gru_serving.commands.signing_arguments import add_signing_arguments, signer_of
from gru_serving.commands.terminal import add_debug_argument, command_parser, waiting
from gru_serving.engine.imports import quiet_stderr
from gru_serving.errors import InvalidArgument
from gru_serving.release.interface import ACCEPT_FLAG, ACCEPT_HELP
from gru_serving.storage.publishing import PublishError, remove_old
from gru_training.termination import remembered_interrupts


def main(argv: Sequence[str]) -> int:
    """Export a run; returns the exit status, 2 where the run or the target cannot be used."""
    parser = command_parser(
        "export",
        "Write a run's best model as the next version of a served model: a SavedModel "
        "that takes raw texts or a series in its own units. A fresh process checks its answers "
        "against those of the Keras model.",
        "example: gru-serve export runs/tickets --to models/tickets",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory of gru-train")
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="DIRECTORY",
        help="base path of the served model; the version becomes DIRECTORY/<next number>",
    )
    parser.add_argument(
        "--keep", type=int, metavar="N", help="afterwards remove all but the N highest versions"
    )
    parser.add_argument(ACCEPT_FLAG, action="store_true", help=ACCEPT_HELP)
    add_signing_arguments(parser)
    add_debug_argument(parser)
    arguments = parser.parse_args(argv)
    if arguments.keep is not None and arguments.keep < 1:
        parser.error(f"--keep: expected at least 1; got {arguments.keep}")
    try:
        signer = signer_of(arguments)
    except (InvalidArgument, ValueError) as error:
        parser.error(str(error))
    with (
        remembered_interrupts(signal.SIGINT, signal.SIGTERM),
        waiting(f"exporting {arguments.run}"),
    ):
        with quiet_stderr():
            from gru_serving.export.run import ExportError, export_run
        try:
            exported = export_run(
                arguments.run, arguments.to, arguments.allow_interface_change, signer
            )
            removed = remove_old(arguments.to, arguments.keep) if arguments.keep else []
        except (ExportError, PublishError) as error:
            if arguments.debug:
                raise
            print(f"gru-serve export: {error}", file=sys.stderr)
            return 2
    base = arguments.to.resolve()
    print(f"exported {exported.version}, verified in a fresh process")
    print(f"signatures: {', '.join(exported.signatures)}")
    taken = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in exported.seconds.items())
    print(f"time: {taken}")
    if exported.parity is not None:
        parity = exported.parity
        print(
            f"streaming: {parity['steps']} steps of {parity['rows']} rows differ from the sequence "
            f"by {parity['largest_difference']:.1e} at most"
        )
    for note in exported.notes:
        print(f"note: {note}")
    for old in removed:
        print(f"removed {old}")
    print(
        "next     gru-serve serve --port=8500 --rest_api_port=8501 "
        f"--model_name={quote(base.name)} --model_base_path={quote(str(base))}"
    )
    return 0
