"""`gru-serve COMMAND ...`, also `python -m gru_serving COMMAND ...`."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from gru_serving.commands.terminal import OUTPUT_ERRORS
from gru_serving.missing_extra import missing_extra

# A module is imported only when its command is called, which keeps help and the light commands
# fast.
COMMANDS = {
    "export": (
        "gru_serving.commands.export",
        "write a trained run as the next version of a served model",
    ),
    "serve": (
        "gru_serving.commands.serve",
        "serve SavedModels over gRPC and REST, with TF Serving's flags",
    ),
    "playground": (
        "gru_serving.commands.playground",
        "serve models on this machine and open the page on which to try them",
    ),
    "predict": (
        "gru_serving.commands.predict",
        "ask a running server about texts, series or a file of rows",
    ),
    "stream": (
        "gru_serving.commands.stream",
        "feed a text or series step by step, and see each answer",
    ),
    "complete": (
        "gru_serving.commands.complete",
        "continue a text, token by token, with a language model",
    ),
    "explain": (
        "gru_serving.commands.explain",
        "show the gates at each word or step, or the words behind an answer",
    ),
    "verify": (
        "gru_serving.commands.verify",
        "check that a version or a server answers as at export",
    ),
    "inspect": ("gru_serving.commands.inspect", "show what an exported version contains"),
    "diff": ("gru_serving.commands.diff", "compare the answers of two versions"),
    "example-request": (
        "gru_serving.commands.example_request",
        "print curl commands and Python programs that query a model",
    ),
    "publish": ("gru_serving.commands.publish", "check a version and copy it to another base path"),
    "prune": ("gru_serving.commands.prune", "remove old versions of a model"),
    "promote": (
        "gru_serving.commands.rollout:promote",
        "move a label of a server to a newer version",
    ),
    "rollback": (
        "gru_serving.commands.rollout:rollback",
        "move a label back to its previous version",
    ),
    "label": (
        "gru_serving.commands.rollout:label",
        "show, set or remove version labels of a server",
    ),
    "deploy-ray": (
        "gru_serving.commands.deploy_ray",
        "serve models with Ray Serve, in replicas on the machines of a cluster",
    ),
    "conformance": (
        "gru_serving.commands.conformance",
        "ask any server whether its answers are TensorFlow Serving's",
    ),
    "watch": (
        "gru_serving.commands.watch",
        "compare logged requests with the data of a version, to notice drift",
    ),
}

# The other commands need the clients, and some need more, such as matplotlib.
_EXTRAS = {"deploy-ray": "ray", "export": "train", "playground": "serve", "serve": "serve"}

_READER_GONE = 128 + 13  # the status that shells report for SIGPIPE, which Windows lacks


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Command and its arguments; the process's own when None.

    Returns:
        The exit status; 2 for a command that does not exist, or output that cannot be written.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        arguments = ["help", *arguments]
    command, *rest = arguments
    try:
        try:
            return int(_find(command)(rest))
        finally:
            if sys.stdout is not None:  # it may be closed, as `>&-` does
                sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"gru-serve {command}: interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        message = missing_extra(error, _EXTRAS.get(command, ""))
        if "--debug" in rest or message is None:
            raise
        print(f"gru-serve {command}: {message}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; otherwise Python prints an error at exit.
        _discard_output()
        return _READER_GONE
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS or "--debug" in arguments:
            raise
        _discard_output()
        print(f"gru-serve: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 2


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _find(command: str) -> Callable[[Sequence[str]], int]:
    """Import the function of a command."""
    if command == "help":
        return _help
    if command not in COMMANDS:
        print(
            f"gru-serve: expected a command ({', '.join(COMMANDS)}); got {command!r}",
            file=sys.stderr,
        )
        return lambda _: 2
    module, _, function = COMMANDS[command][0].partition(":")
    found: Callable[[Sequence[str]], int] = getattr(
        importlib.import_module(module), function or "main"
    )
    return found


def _help(arguments: Sequence[str]) -> int:
    """Print the list of commands; exit status 2 where no command was given."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    print(
        "usage: gru-serve COMMAND ...\n\nFrom a trained run to answers over gRPC and REST.\n\n"
        f"commands:\n{rows}\n\n"
        "gru-serve COMMAND --help explains each command."
    )
    return 0 if arguments else 2


if __name__ == "__main__":
    sys.exit(main())
