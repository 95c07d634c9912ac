"""`gru-serve explain`: what the gates did at each word, asked of a running server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving.client import Client
from serving.connection_arguments import (
    USAGE,
    add_connection_arguments,
    add_target_arguments,
    check_texts,
    connect_as_told,
    exit_status,
    explain_error,
)
from serving.errors import InvalidArgument, ServingError
from serving.help_format import HelpFormatter
from serving.results import Explanation

_EXAMPLES = """examples:
  gru-serve explain --model sentiment "Starts well but ends badly."
  gru-serve explain --model sentiment --picture gates.png "Starts well but ends badly."
  gru-serve explain --model sentiment --output json "a fine film" | jq .tokens

Each row is a token as the model reads it. The strips show the gates of all units, in groups of
neighbours; low and blue is 0, high and yellow is 1. An update gate near 1 keeps the state, near 0
writes the token into it; a reset gate near 0 has the candidate ignore what was read before. The
answer beside a token is the model's answer to the text up to it.
"""


def main(argv: Sequence[str]) -> int:
    """Explain; returns 0, or as `gru-serve verify` 2 or 3 for an error."""
    parser = argparse.ArgumentParser(
        prog="gru-serve explain",
        description="Show what the gates of a served text classifier did at each token, with the "
        "answer after it.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write a .png, .svg or .pdf")
    parser.add_argument(
        "--output", choices=("map", "json"), default="map", help="(default: %(default)s)"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    add_connection_arguments(parser)
    add_target_arguments(parser)
    arguments = parser.parse_args(argv)
    from serving.gate_map import PlotError, picture

    try:
        check_texts([arguments.text], "text")
        with connect_as_told(arguments) as client:
            explanation, classes = explain(
                client,
                arguments.text,
                arguments.model,
                version=arguments.version,
                label=arguments.label,
            )
        if not explanation.tokens:
            raise InvalidArgument("text: expected words; the model finds none in it")
        if arguments.picture is not None:
            picture(explanation, classes, arguments.picture)
    except (PlotError, ServingError, ValueError, OSError) as error:
        if arguments.debug:
            raise
        print(f"gru-serve explain: {explain_error(error)}", file=sys.stderr)
        return USAGE if isinstance(error, PlotError) else exit_status(error)
    _show(explanation, classes, arguments)
    return 0


def explain(
    client: Client, text: str, model: str = "default", **target: Any
) -> tuple[Explanation, list[str]]:
    """What the gates did at each token of a text.

    Args:
        client: Of either transport.
        text: Any text.
        model: Name of the model.
        **target: `version`, `label` and `timeout` as in `Client.predict`.

    Returns:
        The explanation and the class names.

    Raises:
        ServingError: The server's error, or a model without the signature `gates`.
    """
    outputs = client.predict({"text": [text]}, model, signature="gates", **target)
    # Classify names the classes in the order of the scores.
    rows = client.classify([{"text": text}], model, signature="classify", **target)
    return Explanation.from_outputs(outputs)[0], [label for label, _ in rows[0]]


def _show(explanation: Explanation, classes: list[str], arguments: argparse.Namespace) -> None:
    if arguments.output == "json":
        answer = {
            "tokens": explanation.tokens,
            "classes": classes,
            **{
                name: getattr(explanation, name).tolist()
                for name in ("scores", "update_gate", "reset_gate", "state")
            },
        }
        print(json.dumps(answer, ensure_ascii=False))
        return
    from rich.console import Console

    from serving.gate_map import terminal_map

    console = Console()
    console.print(terminal_map(explanation, classes, console.width))
    if arguments.picture is not None:
        print(f"picture {arguments.picture}")
