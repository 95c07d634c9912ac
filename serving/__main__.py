"""`gru-serve COMMAND ...`, also `python -m serving COMMAND ...`."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

# Modules are imported when their command is asked for: help and the light commands stay fast.
COMMANDS = {
    "export": (
        "serving.commands.export",
        "write a trained run as the next version of a SavedModel",
    ),
    "serve": (
        "serving.commands.serve",
        "serve SavedModels over gRPC and REST, with TF Serving's flags",
    ),
    "predict": ("serving.commands.predict", "ask a running server"),
    "stream": (
        "serving.commands.stream",
        "feed a text or series step by step, and see each answer",
    ),
    "explain": ("serving.commands.explain", "show what the gates did at each word or step"),
    "verify": (
        "serving.commands.verify",
        "compare a version's or a server's answers with those at export",
    ),
    "inspect": ("serving.commands.inspect", "what is in an exported version"),
    "diff": ("serving.commands.diff", "how the answers of two versions differ"),
    "example-request": (
        "serving.commands.example_request",
        "working curl and Python lines for a model",
    ),
    "publish": ("serving.commands.publish", "copy a version into another base path, checked"),
    "prune": ("serving.commands.prune", "remove old versions"),
    "promote": ("serving.commands.rollout:promote", "point a label of a server to a newer version"),
    "rollback": ("serving.commands.rollout:rollback", "point a label back to where it was"),
    "label": ("serving.commands.rollout:label", "show, set and remove version labels of a server"),
    "load-test": ("serving.commands.load_test", "measure throughput and latency of a server"),
}

_READER_GONE = 128 + 13  # as shells report SIGPIPE, which Windows has not
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
        return _READER_GONE
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
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if "--debug" in rest or missing in ("", "keras_gru", "training", "serving"):
            raise
        extras = "train,serve" if command == "export" else "serve"
        extras += ",tables" if missing == "pyarrow" else ""
        print(
            f"gru-serve {command}: needs {missing}, which is not installed; install it with "
            f"pip install 'keras-gru[{extras}]'",
            file=sys.stderr,
        )
        return 2


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
