"""`gru-serve stream`: feed a text or series piece by piece; the server keeps no state of it."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gru_serving.client import Client
from gru_serving.client.results import Forecast, Sentiment
from gru_serving.client.series_columns import SeriesColumns
from gru_serving.client.streaming import StreamAnswer, StreamingSession, StreamState
from gru_serving.commands.connection_arguments import (
    add_target_arguments,
    check_texts,
    connect_as_told,
    run_asking,
    target_of,
)
from gru_serving.commands.files.series_csv import (
    Tick,
    Ticks,
    add_csv_arguments,
    model_columns,
    text_format,
    uneven_times,
)
from gru_serving.commands.terminal import (
    command_parser,
    safe_json,
    safe_text,
    share_bar,
)
from gru_serving.errors import InvalidArgument
from gru_serving.named_files import write_whole

_EXAMPLES = """examples:
  gru-serve stream --model sentiment "Starts well but ends badly."
  gru-serve stream --model co2 --csv co2.csv               # a series, row by row
  tail -n +1 -f live.csv | gru-serve stream --model co2 --csv - --columns co2
  gru-serve stream --model co2 --ticks < ticks.jsonl
  gru-serve stream --model sentiment --state talk.json "Starts well"
  gru-serve stream --model sentiment --state talk.json "but ends badly."    # continues later

Words are separated by white space. Without a text, words come from standard input as they arrive.
With --csv, each row is one tick: the model's columns, found by their names, or those of --columns
in the order of the model's; an empty cell is a missing value. With
--ticks, each line is one tick: a JSON list. Each tick is shown with the forecast after it: for
each column the next step with its widest interval, and the last step. After a word, a language
model names the likeliest next tokens.

The session's state is kept here, on the client's side: the server may be restarted meanwhile. When
the version that the state belongs to is replaced, what was fed is replayed on the new one, and the
output says so.
"""


def main(argv: Sequence[str]) -> int:
    """Stream; returns 0, or as `gru-serve verify` 2 or 3 for an error."""
    parser = command_parser(
        "stream",
        "Feed a text word by word, or a series row by row, to a served model, and show "
        "the answer after each. The model needs the signature `step`.",
        _EXAMPLES,
    )
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="words to feed (default: standard input)"
    )
    add_target_arguments(parser)
    add_csv_arguments(parser)
    parser.add_argument(
        "--ticks", action="store_true", help="read lines of JSON numbers instead of words"
    )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="continue from the state in this file, and save it there",
    )
    parser.add_argument(
        "--output",
        choices=("table", "json"),
        default="table",
        help="form of the answers (default: %(default)s)",
    )
    return run_asking(parser, argv, _stream)


def _session(client: Client, arguments: argparse.Namespace) -> StreamingSession:
    if arguments.state is not None and not arguments.state.parent.is_dir():
        # Fail now, before any input is processed and the state would be lost.
        raise InvalidArgument(
            f"--state {arguments.state}: there is no directory {arguments.state.parent}"
        )
    if arguments.state is not None and arguments.state.exists():
        saved = StreamState.from_json(arguments.state.read_text("utf-8"))
        if saved.model != arguments.model:
            raise InvalidArgument(
                f"--state {arguments.state}: is of model {saved.model}; give --model {saved.model}"
            )
        return StreamingSession.resume(client, saved, patience=arguments.timeout)
    return StreamingSession(
        client,
        arguments.model,
        version=arguments.version,
        label=arguments.label,
        patience=arguments.timeout,
    )


def _stream(arguments: argparse.Namespace) -> int:
    with connect_as_told(arguments) as client:
        target = target_of(arguments)
        columns = model_columns(client, arguments, target) if arguments.csv else None
        _feed(_session(client, arguments), columns, arguments)
    return 0


def _feed(
    session: StreamingSession, columns: SeriesColumns | None, arguments: argparse.Namespace
) -> None:
    try:
        for shown, piece in _pieces(session, columns, arguments):
            answer = session.feed(piece)
            if answer.replayed:
                print(
                    f"gru-serve stream: the previous version is gone; version {answer.version} "
                    "serves now, and the earlier input was replayed on it",
                    file=sys.stderr,
                )
            print(_line(shown, answer, arguments.output), flush=True)
    finally:
        if arguments.state is not None and session.version is not None:
            write_whole(arguments.state, session.saved.to_json() + "\n")


def _pieces(
    session: StreamingSession, columns: SeriesColumns | None, arguments: argparse.Namespace
) -> Iterator[tuple[Any, Any]]:
    """Yield each piece with the label to show for it."""
    if arguments.csv is not None:
        names = arguments.columns or (columns.names if columns else ())
        optional = columns.optional if columns else ()
        ticks = Ticks(arguments.csv, names, optional, text_format(arguments))
        said: list[str] = []

        def show(notes: Sequence[str]) -> None:
            for note in notes:
                print(f"gru-serve stream: note: {ticks.name}: {note}", file=sys.stderr)

        rows: Iterable[Tick] = ticks
        if arguments.csv != "-":
            rows = whole = list(ticks)
            uneven = uneven_times(whole, ticks.name)
            show([note for note in (uneven, _fed_before(session, whole)) if note])
        for tick in rows:
            show(notes := ticks.notes()[len(said) :])
            said += notes
            yield tick.label, tick.values.tolist()
        return
    source = sys.stdin if arguments.text is None else arguments.text.splitlines()
    for piece in _ticks(source) if arguments.ticks else _words(source):
        yield piece, np.asarray(piece, np.float32).tolist() if arguments.ticks else piece


def _fed_before(session: StreamingSession, rows: Sequence[Tick]) -> str | None:
    """Return a note if the rows begin as those that the session was fed."""
    fed = (session.saved.history or ()) if session.version is not None else ()
    count = min(len(fed), len(rows))
    values = [tick.values.tolist() for tick in rows[:count]]
    if count < 2 or not np.array_equal(values, list(fed[:count]), equal_nan=True):
        return None
    return (
        f"its first {count} rows were fed before and are fed again, as a state knows no times: "
        "leave them out"
    )


def _words(lines: TextIO | Sequence[str]) -> Iterator[str]:
    for line in lines:
        check_texts([line], "text")
        yield from line.split()


def _ticks(lines: TextIO | Sequence[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            tick = json.loads(line)
            np.asarray(tick, np.float32)
        except (ValueError, TypeError):
            raise InvalidArgument(
                f"line {number}: expected a JSON number or list of numbers; got {line!r:.60}"
            ) from None
        yield tick


_NEXT_SHOWN = 5
"""Number of a language model's next tokens that are shown."""


def _line(piece: Any, answer: StreamAnswer, form: str) -> str:
    if form == "json":
        outputs = {name: _json(array[0]) for name, array in answer.outputs.items()}
        line = {"fed": piece, "version": answer.version, **outputs}
        return safe_json(json.dumps(line, ensure_ascii=False))
    fed = f"{safe_text(piece):<20}"
    if {"label", "probability", "scores"} <= answer.outputs.keys():
        result = Sentiment.from_outputs(answer.outputs)[0]
        bar = share_bar(result.probability, 20)
        return f"{fed} {safe_text(result.label):<12} {result.probability:.3f} {bar}"
    if {"forecast", "quantiles"} <= answer.outputs.keys():
        return f"{fed} {_forecast(Forecast.from_outputs(answer.outputs)[0])}"
    if {"next_token", "log_probability"} <= answer.outputs.keys():
        tokens, logarithms = (answer.outputs[name][0] for name in ("next_token", "log_probability"))
        likeliest = zip(_json(tokens[:_NEXT_SHOWN]), np.exp(logarithms), strict=False)
        return f"{fed} {'  '.join(f'{safe_text(token)} {share:.3f}' for token, share in likeliest)}"
    shown = "  ".join(
        f"{name} {np.array2string(np.asarray(array[0]), precision=4, threshold=12)}"
        for name, array in answer.outputs.items()
    )
    return f"{fed} {safe_text(shown)}"


def _forecast(forecast: Forecast) -> str:
    """Describe, per column, the next step with its widest interval, and the last step."""
    shown = []
    for column, of_column in zip(forecast.values.T, forecast.quantiles.swapaxes(0, 1), strict=True):
        low, high = of_column[0, 0], of_column[0, -1]
        last = f" ... {column[-1]:.5g}" if len(column) > 1 else ""
        shown.append(f"{column[0]:.5g} [{low:.5g}, {high:.5g}]{last}")
    return "  ".join(shown)


def _json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return float(value) if isinstance(value, np.floating) else value
