"""`gru-serve COMMAND ...`, also `python -m serving COMMAND ...`."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence

# Modules are imported when their command is asked for: help and the light commands stay fast.
COMMANDS = {
    "export": ("serving.export_command", "write a trained run as the next version of a SavedModel"),
    "serve": ("serving.server", "serve SavedModels over gRPC and REST, with TF Serving's flags"),
    "predict": ("serving.predict", "ask a running server"),
    "stream": ("serving.stream_command", "feed a text or series step by step, and see each answer"),
    "explain": ("serving.explain_command", "show what the gates did at each word or step"),
    "verify": ("serving.verify", "compare a version's or a server's answers with those at export"),
    "inspect": ("serving.inspect_command", "what is in an exported version"),
    "diff": ("serving.diff_command", "how the answers of two versions differ"),
    "example-request": ("serving.example_request", "working curl and Python lines for a model"),
    "publish": ("serving.publish_command", "copy a version into another base path, checked"),
    "prune": ("serving.prune_command", "remove old versions"),
    "promote": ("serving.rollout_command:promote", "point a label of a server to a newer version"),
    "rollback": ("serving.rollout_command:rollback", "point a label back to where it was"),
    "label": ("serving.rollout_command:label", "show, set and remove version labels of a server"),
    "load-test": ("serving.load_test_command", "measure throughput and latency of a server"),
}

_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Command and its arguments; the process's own when None.

    Returns:
        The exit status; 2 for a command that does not exist, or output that cannot be written.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:  # it may be closed, as `>&-` does
                sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output, as `head`, has seen enough; Python would complain at its end.
        _discard_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in _UNWRITTEN or "--debug" in arguments:
            raise
        _discard_output()
        print(f"gru-serve: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 2


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else 2
    command, *rest = arguments
    if command not in COMMANDS:
        print(
            f"gru-serve: expected a command ({', '.join(COMMANDS)}); got {command!r}",
            file=sys.stderr,
        )
        return 2
    try:
        module, _, function = COMMANDS[command][0].partition(":")
        return int(getattr(importlib.import_module(module), function or "main")(rest))
    except KeyboardInterrupt:
        print(f"gru-serve {command}: interrupted", file=sys.stderr)
        return 130


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    return (
        "usage: gru-serve COMMAND ...\n\nFrom a trained run to answers over gRPC and REST.\n\n"
        f"commands:\n{rows}\n\n"
        "gru-serve COMMAND --help tells more."
    )


if __name__ == "__main__":
    sys.exit(main())
