"""`gru-serve predict`: query a running server."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gru_serving.client import Client
from gru_serving.client.results import Forecast
from gru_serving.codecs.batch_parts import row_count
from gru_serving.codecs.dtypes import by_number
from gru_serving.codecs.json_inputs import decode_inputs
from gru_serving.codecs.rapidjson import writer as json_writer
from gru_serving.codecs.rapidjson.parser import parse
from gru_serving.codecs.signature import DEFAULT_SIGNATURE, Signature, shape_text
from gru_serving.commands.connection_arguments import (
    add_target_arguments,
    check_texts,
    connect_as_told,
    run_asking,
    target_of,
)
from gru_serving.commands.files.series_csv import add_csv_arguments, model_ticks, stacked
from gru_serving.commands.terminal import (
    USAGE,
    command_parser,
    safe_json,
    safe_text,
)
from gru_serving.errors import FailedPrecondition, InvalidArgument, NotFound, ServingError

MOST_NAMES = 6
"""Number of classes of a row that are shown; of more classes only the likeliest are."""


def class_names(
    client: Client,
    model: str,
    target: Any,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
) -> list[str]:
    """Return the classes in the order of the scores, from the signature `classify`.

    Empty without it.

    Args:
        client: Client of the server that gave the outputs.
        model: Name of the model.
        target: `version` and `label`.
        inputs: Inputs of the request; its first row is classified.
        outputs: Outputs of the answer, among them `scores` (B, C) and `label` (B,).
    """
    scores, label = outputs.get("scores"), outputs.get("label")
    answers = label is not None or "labels" in outputs
    if scores is None or not answers or scores.ndim != 2 or not len(scores):
        return []
    if label is not None and label.shape != scores.shape[:1]:
        return []
    example = {name: array[0] for name, array in inputs.items() if array.ndim}
    try:
        (row,) = client.classify([example], model, signature="classify", **target)
    except (ServingError, ValueError, TypeError):  # the model has no such signature
        return []
    names = [name for name, _ in row]
    if label is None:  # any number of labels
        return names if len(set(names)) == scores.shape[1] else []
    # The answer is not always the likeliest class: costs or thresholds may decide otherwise.
    known = len(names) == scores.shape[1] and label[0] in [name.encode() for name in names]
    return names if known else []


def likeliest(scores: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """Return the likeliest classes with their scores for each row (B, C), (B,) texts."""
    texts = np.empty(len(scores), object)
    for number, row in enumerate(scores):
        best = np.argsort(-row, kind="stable")[:MOST_NAMES]
        shown = ", ".join(f"{classes[k]} {row[k]:.4g}" for k in best)
        texts[number] = f"{shown} ..." if len(row) > len(best) else shown
    return texts


_MAX_WIDTH = 1 << 20
_LEADING_OUTPUTS = ("label", "labels", "value", "probability", "scores")


def print_answers(
    inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray], classes: Sequence[str]
) -> None:
    """Print a line per example, or one per output where the outputs are not per example.

    Args:
        inputs: Arrays by name; texts are shown beside the answers.
        outputs: Arrays by name.
        classes: Names of the columns of `scores`, if known.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = {name: array for name, array in inputs.items() if array.dtype == object}
    order: list[str] = [name for name in _LEADING_OUTPUTS if name in outputs]
    order += [name for name in outputs if name not in order]
    columns: dict[str, Any] = {**shown, **{name: outputs[name] for name in order}}
    if 0 < len(classes) <= MOST_NAMES and not columns.keys() & set(classes):
        scores = columns.pop("scores")
        columns.update(zip(classes, scores.T, strict=True))
    elif classes:
        columns["scores"] = likeliest(columns["scores"], classes)
    console = Console()
    batch = row_count([*inputs.values(), *outputs.values()])
    if batch is None:
        for name in order:
            shape = list(outputs[name].shape)
            console.print(Text(f"{safe_text(name)} {shape}: {_cell(outputs[name])}"))
        return
    if {"tokens", "log_probabilities", "length"} <= outputs.keys():  # padded to the longest text
        for name in ("tokens", "log_probabilities"):
            rows = zip(outputs[name], outputs["length"], strict=True)
            columns[name] = [row[: int(length)] for row, length in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(Text(safe_text(name)), overflow="fold")
    for i in range(batch):
        table.add_row(*(Text(_cell(array[i])) for array in columns.values()))
    console.print(table)


def print_forecasts(forecasts: Sequence[Forecast], names: Sequence[str]) -> None:
    """Print a line per step ahead with the forecast and widest interval of each column.

    Args:
        forecasts: Forecasts of one or more series.
        names: Names of the columns; empty where they are not known.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    for number, forecast in enumerate(forecasts, 1):
        table = Table(box=None, pad_edge=False, header_style="bold")
        if len(forecasts) > 1:
            table.title = f"series {number}"
        columns = forecast.values.shape[1]
        table.add_column("step", justify="right", no_wrap=True)
        headings = names or [f"forecast {number}" for number in range(1, columns + 1)]
        for heading in headings if columns > 1 else ["forecast"]:
            table.add_column(Text(safe_text(heading)), justify="right", no_wrap=True)
            table.add_column("interval", no_wrap=True)
        for step, (values, quantiles) in enumerate(
            zip(forecast.values, forecast.quantiles, strict=True), 1
        ):
            cells = [
                Text(text)
                for value, of_value in zip(values, quantiles, strict=True)
                for text in (f"{value:.5g}", f"[{of_value[0]:.5g}, {of_value[-1]:.5g}]")
            ]
            table.add_row(str(step), *cells)
        # Numbers must not be cut: the terminal folds lines that are too wide.
        screen = Console()
        wide = screen.measure(table, options=screen.options.update(width=_MAX_WIDTH)).maximum
        Console(width=max(screen.width, wide)).print(table)


def _cell(value: Any) -> str:
    """Format one example's part of a tensor, short enough to read."""
    if isinstance(value, bytes):
        return safe_text(value.decode("utf-8", "replace"))
    if isinstance(value, np.ndarray) and value.ndim:
        if value.size > 64:
            shown = np.array2string(value, precision=4, threshold=16, edgeitems=2)
            return shown if value.dtype != object else safe_text(shown)
        if value.ndim == 1:
            return " ".join(_cell(item) for item in value)
        return safe_text(value.tolist())
    if isinstance(value, np.ndarray):
        return _cell(value.item())
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return safe_text(value)


_USAGE = (InvalidArgument, NotFound, FailedPrecondition)

_EXAMPLES = """examples:
  gru-serve predict --model sentiment "what a film" "never again"
  gru-serve predict --url localhost:8500 --model sentiment "over gRPC"
  gru-serve predict --model co2 --csv co2.csv
  gru-serve predict --model co2 --json request.json --output json
      request.json: {"inputs": {"history": [[[310.2], [310.9]]]}}
                or  {"instances": [{"history": [[310.2], [310.9]]}]}
  gru-serve predict --model tickets --data june.csv --output june-scored.parquet
  gru-serve predict --model tickets --data mails.jsonl --text-column body --keep id \\
      --output labels.csv
  echo '{"instances": ["piped"]}' | gru-serve predict --model sentiment --json -
"""


def main(argv: Sequence[str]) -> int:
    """Ask a server and print its answer.

    Returns:
        0; 1 when the server failed; 2 when arguments or data were wrong, among them a model,
        version, label, signature or input that the server does not have.
    """
    return run_asking(_parser(), argv, _predict, _status)


def _status(error: Exception) -> int:
    return 1 if isinstance(error, ServingError) and not isinstance(error, _USAGE) else USAGE


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "predict",
        "Ask a running server, over REST or gRPC, about texts, a series in a file, or "
        "a JSON request in TF Serving's form; or score a file of texts of any size into another "
        "file.",
        _EXAMPLES,
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="texts to ask about, one each")
    add_target_arguments(parser)
    add_csv_arguments(parser)
    parser.add_argument("--json", metavar="FILE", help="read the request from FILE; - for stdin")
    parser.add_argument(
        "--output",
        default="table",
        metavar="table|json|FILE",
        help="how to print the answer; with --data the file for the answers (default: table)",
    )
    parser.add_argument(
        "--signature", default="", help="entry point of the model (default: serving_default)"
    )
    _add_file_arguments(parser)
    return parser


def _add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --data and its options."""
    group = parser.add_argument_group(
        "files of texts",
        "The output has the columns of the file, in its order, and the answers: of a text "
        "classifier label, probability and each class under its name. A column of the file "
        "with one of these names gets the prefix input_. Empty and missing texts are "
        "answered, too. After an interruption, run the same command again to continue.",
    )
    group.add_argument(
        "--data",
        metavar="FILE",
        help="texts in CSV, TSV, JSON lines or list (also .gz, .zst), Parquet, Arrow or Excel",
    )
    group.add_argument(
        "--text-column", metavar="NAME", help="column with the text (default: text, sentence, ...)"
    )
    group.add_argument(
        "--keep",
        metavar="COLUMN,...",
        help="columns of the file to copy to the output; '' for none (default: all)",
    )
    group.add_argument("--overwrite", action="store_true", help="replace the output if it exists")
    group.add_argument(
        "--in-flight",
        type=int,
        default=4,
        metavar="N",
        help="requests sent at the same time (default: %(default)s)",
    )


def _check_arguments(arguments: argparse.Namespace) -> None:
    ways = (arguments.texts, arguments.csv, arguments.json, arguments.data)
    given = [bool(way) for way in ways].count(True)
    if given != 1:
        raise InvalidArgument(
            "expected either texts or --csv FILE or --json FILE or --data FILE; got "
            + ("several" if given else "none (see --help)")
        )
    printed = arguments.output in ("table", "json")
    if printed and arguments.data:
        raise InvalidArgument("--data: expected --output FILE with it, for the answers")
    if not printed and not arguments.data:
        raise InvalidArgument(
            f"--output: expected table or json, or --data FILE with it; got {arguments.output!r}"
        )


def _predict(arguments: argparse.Namespace) -> int:
    _check_arguments(arguments)
    if arguments.data:
        from gru_serving.commands.files.score_file import score_file

        with connect_as_told(arguments) as client:
            return score_file(arguments, client)
    raw, names = b"", tuple[str, ...]()
    if arguments.json:
        from_stdin = arguments.json == "-"
        raw = sys.stdin.buffer.read() if from_stdin else Path(arguments.json).read_bytes()
    check_texts(arguments.texts)
    with connect_as_told(arguments) as client:
        target = target_of(arguments)
        signature = _signature(client, arguments, target)
        if arguments.json:
            inputs = _json_inputs(raw, signature, arguments.json)
        elif arguments.csv:
            inputs, names = _csv_inputs(client, arguments, signature, target)
        else:
            inputs = _text_inputs(arguments.texts, signature)
        outputs = client.predict(inputs, arguments.model, signature=arguments.signature, **target)
        classes = []
        if arguments.output == "table" and arguments.signature in ("", DEFAULT_SIGNATURE):
            classes = class_names(client, arguments.model, target, inputs, outputs)
    if arguments.output == "json":
        print(_json_text(outputs))
    elif {"forecast", "quantiles"} <= outputs.keys():
        print_forecasts(Forecast.from_outputs(outputs), names)
    else:
        print_answers(inputs, outputs, classes)
    return 0


def _signature(client: Client, arguments: argparse.Namespace, target: Any) -> Signature:
    try:
        known = client.metadata(arguments.model, **target).signatures
    except NotFound as error:
        asked = f"--model {arguments.model}"
        if arguments.version is not None:
            asked += f" --version {arguments.version}"
        raise NotFound(f"{asked}: expected what {client.url} serves; got: {error}") from error
    name = arguments.signature or DEFAULT_SIGNATURE
    if name not in known:
        names = sorted(one for one in known if not one.startswith("__"))
        raise InvalidArgument(f"--signature: expected one of {names}; got {name!r}")
    return known[name]


def _json_inputs(raw: bytes, signature: Signature, name: str) -> dict[str, np.ndarray]:
    try:
        inputs, _ = decode_inputs(parse(raw), signature, strict=True)
    except ServingError as error:
        where = "standard input" if name == "-" else name
        raise InvalidArgument(f"{where}: expected {_describe(signature)}; got: {error}") from error
    return inputs


def _csv_inputs(
    client: Client, arguments: argparse.Namespace, signature: Signature, target: Any
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Return the inputs of a forecaster from `--csv`, and the names of what it forecasts."""
    if not {"history"} <= set(signature.inputs) <= {"history", "future", "timestamp"}:
        raise InvalidArgument(
            f"--csv: expected a forecaster, with the input history; the model takes "
            f"{_describe(signature)}"
        )
    rows = model_ticks(client, arguments, target)
    for note in rows.notes:
        print(f"gru-serve predict: note: {arguments.csv}: {note}", file=sys.stderr)
    inputs: dict[str, np.ndarray] = {"history": stacked(rows.ticks, arguments.csv)}
    if "future" in signature.inputs:
        inputs["future"] = rows.future(arguments.csv)
    if "timestamp" in signature.inputs:
        inputs["timestamp"] = rows.timestamp()
    return inputs, () if rows.columns is None else rows.columns.forecast


def _text_inputs(texts: Sequence[str], signature: Signature) -> dict[str, np.ndarray]:
    strings = [
        name for name, info in signature.inputs.items() if by_number(info.dtype).name == "string"
    ]
    if len(strings) != 1 or len(signature.inputs) != 1:
        raise InvalidArgument(
            f"texts: the model takes {_describe(signature)}; send it with --json FILE"
        )
    array = np.empty(len(texts), object)
    array[:] = [text.encode() for text in texts]
    return {strings[0]: array}


def _describe(signature: Signature) -> str:
    inputs = ", ".join(
        f"{name} ({by_number(info.dtype).name} {shape_text(info.shape)})"
        for name, info in signature.inputs.items()
    )
    return f'{{"inputs": ...}} or {{"instances": [...]}} with {inputs}'


def _json_text(outputs: dict[str, np.ndarray]) -> str:
    row = row_count(outputs.values()) is not None
    text = json_writer.rows(outputs) if row else json_writer.columns(outputs)
    return safe_json(text.decode("utf-8", "replace"))
