"""`gru-serve explain`: show the gates of a served model, or the words that decided its answer."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.client import Client
from gru_serving.client.results import Attribution, Explanation, SeriesExplanation, TextLabels
from gru_serving.commands.connection_arguments import (
    add_target_arguments,
    check_texts,
    connect_as_told,
    run_asking,
    target_of,
)
from gru_serving.commands.files.series_csv import add_csv_arguments, model_ticks, stacked
from gru_serving.commands.terminal import (
    command_parser,
    safe_json,
)
from gru_serving.errors import InvalidArgument, PlotError, Unknown

_EXAMPLES = """examples:
  gru-serve explain --model sentiment "Starts well but ends badly."
  gru-serve explain --model sentiment --picture gates.png "Starts well but ends badly."
  gru-serve explain --model sentiment --output json "a fine film" | jq .tokens
  gru-serve explain --model sentiment --attribution "Starts well but ends badly."
  gru-serve explain --model tickets --attribution --of billing --html why.html "Charged twice!"
  gru-serve explain --model co2 --csv co2.csv --picture gates.png

Each row is a token as the model reads it, or a segment of the series with the time of its last
step. The strips show the gates of all units, in groups of neighbours; low and blue is 0, high and
yellow is 1. An update gate near 1 keeps the state, near 0 writes the token into it; a reset gate
near 0 has the candidate ignore what was read before. The answer beside a token is the model's
answer to the text up to it. The gates are the network's, which may have no share in the answer, as
the export of the model says; --attribution shows what decides.

With --attribution each row is a token and its share in the answer by integrated gradients: above 0
it speaks for the class or label, below 0 against it. The shares are in log-odds, or in the
units of the number.
"""


def main(argv: Sequence[str]) -> int:
    """Explain; returns 0, or as `gru-serve verify` 2 or 3 for an error."""
    parser = command_parser(
        "explain",
        "Show the gates of a served model at each token of a text or segment of a "
        "series, with the answer after it; with --attribution, the words that the answer is due "
        "to.",
        _EXAMPLES,
    )
    parser.add_argument("text", nargs="?", metavar="TEXT", help="text to explain")
    add_target_arguments(parser)
    parser.add_argument(
        "--attribution", action="store_true", help="show which words the answer is due to"
    )
    parser.add_argument(
        "--of",
        default="",
        metavar="CLASS",
        help="the class or label to attribute (default: the one answered)",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write the attribution as a page, words marked"
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw the gates in a .png, .svg or .pdf file"
    )
    add_csv_arguments(parser)
    parser.add_argument(
        "--gru",
        type=int,
        default=0,
        metavar="N",
        help="number of the GRU, for a model with one per column (default: 0)",
    )
    parser.add_argument(
        "--output",
        choices=("map", "json"),
        default="map",
        help="form of the answer (default: %(default)s)",
    )
    return run_asking(parser, argv, _explain, errors=(PlotError,))


def _explain(arguments: argparse.Namespace) -> int:
    from gru_serving.commands.explanations import picture

    series, thresholds = None, list[float]()
    if (arguments.text is None) == (arguments.csv is None):
        raise InvalidArgument("expected either a text or --csv FILE")
    _check_attribution(arguments)
    if arguments.attribution:
        with connect_as_told(arguments) as client:
            attribution = _attribute(client, arguments)
        return _show_attribution(attribution, arguments)
    with connect_as_told(arguments) as client:
        if arguments.csv is not None:
            explanation, series = _explain_csv(client, arguments)
            classes: list[str] = []
        else:
            explanation, classes = _explain_text(client, arguments)
            thresholds = _thresholds(client, arguments)
    if arguments.picture is not None and picture(explanation, classes, arguments.picture, series):
        print(
            "gru-serve explain: note: the font of the picture lacks letters, which are boxes there",
            file=sys.stderr,
        )
    _show(explanation, classes, thresholds, arguments)
    return 0


def _check_attribution(arguments: argparse.Namespace) -> None:
    if arguments.attribution:
        for flag in ("csv", "picture"):
            if getattr(arguments, flag) is not None:
                raise InvalidArgument(f"--{flag} is for gates, not for --attribution")
    elif arguments.of or arguments.html is not None:
        raise InvalidArgument("--of and --html need --attribution")


def _attribute(client: Client, arguments: argparse.Namespace) -> Attribution:
    check_texts([arguments.text], "text")
    target = target_of(arguments)
    signature = client.metadata(arguments.model, **target).find("attribution")
    inputs = {"text": [arguments.text]}
    if "label" in signature.inputs:
        inputs["label"] = [arguments.of]
    elif arguments.of:
        raise InvalidArgument("--of: the model estimates a number, and has no classes")
    outputs = client.predict(inputs, arguments.model, signature="attribution", **target)
    found = Attribution.from_outputs(outputs)
    if len(found) != 1:
        raise Unknown(f"the server's answer: expected one row; got {len(found)}")
    if not found[0].tokens:
        raise InvalidArgument("text: expected words; the model finds none in it")
    return found[0]


def _show_attribution(attribution: Attribution, arguments: argparse.Namespace) -> int:
    from gru_serving.commands.explanations import summary, terminal_words, write_page

    if arguments.html is not None:
        write_page(attribution, arguments.html)
    if arguments.output == "json":
        answer = {**vars(attribution), "scores": attribution.scores.tolist()}
        print(safe_json(json.dumps(answer, ensure_ascii=False)))
        return 0
    from rich.console import Console

    Console().print(terminal_words(attribution))
    print(summary(attribution))
    if arguments.html is not None:
        print(f"page {arguments.html}")
    return 0


def _explain_text(client: Client, arguments: argparse.Namespace) -> tuple[Explanation, list[str]]:
    check_texts([arguments.text], "text")
    target = target_of(arguments)
    explanation, classes = explain(client, arguments.text, arguments.model, **target)
    if not explanation.tokens:
        raise InvalidArgument("text: expected words; the model finds none in it")
    return explanation, classes


def _explain_csv(client: Client, arguments: argparse.Namespace) -> tuple[Explanation, Any]:
    """Show the gates, and the column of one GRU as a curve over the axis of segments."""
    target = target_of(arguments)
    rows = model_ticks(client, arguments, target)
    history = stacked(rows.ticks, arguments.csv)
    for note in rows.notes:
        print(f"gru-serve explain: note: {arguments.csv}: {note}", file=sys.stderr)
    inputs: dict[str, Any] = {"history": history}
    gates = client.metadata(arguments.model, **target).signatures.get("gates")
    if gates is not None and "timestamp" in gates.inputs:
        inputs["timestamp"] = rows.timestamp()
    outputs = client.predict(inputs, arguments.model, signature="gates", **target)
    explanations = SeriesExplanation.from_outputs(outputs)
    if len(explanations) != 1 or not explanations[0].end.size:
        raise Unknown("the server's answer: expected one row with a step; got none, or more rows")
    shown = explanations[0]
    explanation = shown.of(arguments.gru, [tick.label for tick in rows.ticks])
    width = max(1, int(shown.end[1] - shown.end[0])) if len(shown.end) > 1 else 1
    steps = np.arange(len(rows.ticks) - len(shown.values), len(rows.ticks))
    # Segment n lies between n - 1/2 and n + 1/2.
    places = (steps - shown.end[0] + 0.5 * (width - 1)) / width
    curve = shown.values[:, min(arguments.gru, shown.values.shape[1] - 1)]
    return explanation, (places, curve)


def explain(
    client: Client, text: str, model: str = "default", **target: Any
) -> tuple[Explanation, list[str]]:
    """Return the gates at each token of a text.

    Args:
        client: Client of either transport.
        text: Text to explain.
        model: Name of the model.
        **target: `version`, `label` and `timeout` as in `Client.predict`.

    Returns:
        The explanation and the class names.

    Raises:
        ServingError: The server's error, or a model without the signature `gates`.
    """
    outputs = client.predict({"text": [text]}, model, signature="gates", **target)
    if "regress" in client.metadata(model, **target).signatures:
        rows = [[("", 0.0)]]  # a number
    else:  # Classify names the classes in the order of the scores.
        rows = client.classify([{"text": text}], model, signature="classify", **target)
    explanations = Explanation.from_outputs(outputs)
    if len(rows) != 1 or len(explanations) != 1:
        raise Unknown(
            f"the server's answer: expected one row; got {len(explanations)} of the gates and "
            f"{len(rows)} of the classes"
        )
    explanation, classes = explanations[0], [label for label, _ in rows[0]]
    if explanation.scores.shape[1] != len(classes):
        raise Unknown(
            f"the server's answer: {explanation.scores.shape[1]} scores for {len(classes)} classes"
        )
    return explanation, classes


def _thresholds(client: Client, arguments: argparse.Namespace) -> list[float]:
    """Return the probability from which each label applies.

    Empty for models with one class per text.
    """
    target = target_of(arguments)
    if "thresholds" not in client.metadata(arguments.model, **target).find("").outputs:
        return []
    outputs = client.predict({"text": [arguments.text]}, arguments.model, **target)
    return [least for row in TextLabels.from_outputs(outputs) for least in row.thresholds.tolist()]


def _show(
    explanation: Explanation,
    classes: list[str],
    thresholds: list[float],
    arguments: argparse.Namespace,
) -> None:
    if arguments.output == "json":
        answer = {
            "tokens": explanation.tokens,
            "classes": classes,
            **{
                name: getattr(explanation, name).tolist()
                for name in ("scores", "update_gate", "reset_gate", "state")
            },
        }
        print(safe_json(json.dumps(answer, ensure_ascii=False)))
        return
    from rich.console import Console

    from gru_serving.commands.explanations import terminal_map

    console = Console()
    console.print(terminal_map(explanation, classes, console.width, thresholds))
    if arguments.picture is not None:
        print(f"picture {arguments.picture}")
