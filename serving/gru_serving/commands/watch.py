"""`gru-serve watch`: compare logged requests and answers with the training data."""

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gru_serving.commands.files.outcome_table import read_outcomes
from gru_serving.commands.terminal import (
    command_parser,
    explain_error,
    run_command,
    safe_json,
    safe_text,
    waiting,
)
from gru_serving.drift.outcomes import Accuracy
from gru_serving.drift.prediction_logs import log_files, read_log
from gru_serving.drift.stability import MOVED, OUTSIDE_SHARE, SHIFTED, SHIFTED_OUTSIDE
from gru_serving.drift.watch import Report, Watch
from gru_serving.errors import InvalidArgument, NotFound
from gru_serving.named_files import write_whole
from gru_serving.storage.publishing import find_version
from gru_serving.telemetry.metrics import Gauge

_EXAMPLES = f"""examples:
  gru-serve serve --model_config_file=models.config --prediction_log_directory=logs \\
      --prediction_log_sampling_rate=0.1                      # writes what is read here
  gru-serve watch logs --version models/sentiment
  gru-serve watch logs --version models/sentiment/3 --hours 24 --label-next next.csv
  gru-serve watch logs --version models/sentiment --outcomes corrected.csv
  gru-serve watch logs --version models/sentiment --every 300 --metrics /var/lib/node/gru.prom

Each quantity is compared with the held-out rows that the version was exported with. Quantities of
texts are their number of words, their share of unknown words, labels and scores; those of series
are level, spread and missing values of each column, and the forecasts. The population stability
index says how far the two are apart: up to {MOVED:g} a quantity is stable, up to {SHIFTED:g} it has
moved, beyond that it has shifted. The column "chance" is the index that so few rows may have by
chance; up to it a quantity counts as stable. A small group of unlike rows moves no index, so a
quantity has shifted, too, where more than {SHIFTED_OUTSIDE:.0%} of the rows lie outside of the
range of 98 % of the held-out rows. Chance assumes that rows are independent. Overlapping windows
of a series are not: watch them over a season.

exit status: 0 nothing has shifted; 1 something has; 2 wrong arguments or files; 130 interrupted
"""


def main(argv: Sequence[str]) -> int:
    """Watch; returns the exit status, as described in the help."""
    try:
        return run_command(_parser(), argv, _watch)
    except KeyboardInterrupt:
        return 130


def _watch(arguments: argparse.Namespace) -> int:
    if arguments.every is None:
        return _once(arguments)
    while True:
        try:
            _once(arguments)
        except NotFound as error:  # the server has logged nothing yet
            print(f"gru-serve watch: {explain_error(error)}", file=sys.stderr)
        time.sleep(arguments.every)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "watch",
        "Compare logged requests and answers with the data of a version, name texts "
        "worth labelling, and say how often answers were right.",
        _EXAMPLES,
    )
    parser.add_argument(
        "logs", type=Path, metavar="LOGS", help="directory of a prediction log, or one of its files"
    )
    parser.add_argument(
        "--version",
        type=Path,
        required=True,
        metavar="MODEL",
        help="directory of the version that answers, or a base path for its highest",
    )
    parser.add_argument(
        "--model", metavar="NAME", help="model to look at, where the logs have several"
    )
    parser.add_argument(
        "--hours", type=_positive, metavar="N", help="only requests of the last N hours"
    )
    parser.add_argument(
        "--outcomes",
        type=Path,
        metavar="FILE",
        help="what was true: a table, such as a CSV file, with a text and a label column",
    )
    parser.add_argument(
        "--label-separator", metavar="TEXT", help="between several labels in a cell of --outcomes"
    )
    parser.add_argument(
        "--label-next", type=Path, metavar="FILE", help="write texts worth labelling to a .csv file"
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=20,
        metavar="N",
        help="texts to write of each kind, least sure and most unlike (default: %(default)s)",
    )
    parser.add_argument(
        "--metrics", type=Path, metavar="FILE", help="write the figures in Prometheus' text form"
    )
    parser.add_argument(
        "--every", type=_positive, metavar="SECONDS", help="look again and again, until Ctrl-C"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return number


def _once(arguments: argparse.Namespace) -> int:
    if arguments.rows < 1:
        raise InvalidArgument(f"--rows: expected at least 1; got {arguments.rows}")
    version = find_version(arguments.version).resolve()
    outcomes = {}
    if arguments.outcomes:
        outcomes = read_outcomes(arguments.outcomes, arguments.label_separator)
    watch = Watch(version, outcomes, arguments.rows, arguments.model)
    since = time.time() - arguments.hours * 3600 if arguments.hours else 0
    with waiting(f"reading {arguments.logs}"):
        for file in log_files(arguments.logs):
            watch.add(read_log(file), since)
    if arguments.model and watch.models and arguments.model not in watch.models:
        raise NotFound(
            f"--model: expected one of {sorted(watch.models)}, which {arguments.logs} has; "
            f"got {arguments.model!r}"
        )
    report = watch.report()
    if arguments.metrics:
        model = arguments.model or version.parent.name
        write_whole(arguments.metrics, _exposition(report, model, version.name))
    if arguments.label_next:
        write_whole(arguments.label_next, _to_label(report))
    if arguments.json:
        print(safe_json(json.dumps(_as_json(report), ensure_ascii=False, indent=1)))
    else:
        _print(version, report, arguments)
    return int(report.verdict == "shifted")


def _to_label(report: Report) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["text", "label", "predicted", "reason"])
    writer.writerows([worth.text, "", worth.answer, worth.reason] for worth in report.worth)
    return table.getvalue()


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "rows": report.rows,
        "requests": report.requests,
        "requests_of_other_versions": report.others,
        "golden_requests": report.golden,
        "quantities": [
            {
                "name": one.name,
                "before": one.before,
                "now": one.now,
                "stability_index": one.stability.value,
                "chance": one.stability.noise,
                "share_outside": one.outside,
                "rows_far_outside": one.far_outside,
                "verdict": one.verdict,
            }
            for one in report.findings
        ],
        "accuracy": report.accuracy
        and {**report.accuracy._asdict(), "share": report.accuracy.share},
        "worth_labelling": [one._asdict() for one in report.worth],
    }


def _print(version: Path, report: Report, arguments: argparse.Namespace) -> None:
    console = Console(highlight=False)
    say = partial(console.print, markup=False, soft_wrap=True)
    period = ""
    if report.since is not None:
        period = f" from {_moment(report.since)} to {_moment(report.until)}"
    say(f"{version}: {report.rows:,} rows in {report.requests:,} requests{period}")
    for number, requests in sorted(report.others.items()):
        say(f"left out: {requests:,} requests that version {number} answered")
    if report.golden:
        say(f"left out: {report.golden:,} golden requests, as gru-serve verify sends them")
    if not report.findings:
        hours = f" of the last {arguments.hours:g} hours" if arguments.hours else ""
        say(f"Nothing to compare: no logged request{hours} has this version's texts or series.")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("quantity", "held-out rows", "requests"):
        table.add_column(heading, overflow="fold")
    for heading in ("outside", "index", "chance"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in report.findings:
        index, noise = one.stability
        outside = f"{one.outside:.1%}" if one.outside else ""
        if one.far_outside:
            outside += f" ({one.far_outside:,} far)"
        figures = outside, f"{index:.3f}", f"{noise:.3f}"
        cells = one.name, one.before, one.now, *figures, one.verdict
        table.add_row(*(Text(safe_text(cell)) for cell in cells))
    console.print(table)
    say("Numbers: the median, and in brackets the range of 98 % of the rows.")
    if any(one.outside for one in report.findings):
        say(
            f"outside: rows outside of that range of the held-out rows, {OUTSIDE_SHARE:.0%} if "
            "nothing has changed; far ones are farther from it than it is wide."
        )
    if report.accuracy is not None:
        say(_accuracy(report.accuracy))
    elif arguments.outcomes:
        say(f"No text of {arguments.outcomes} is among the requests.")
    if report.worth and arguments.label_next:
        say(f"texts worth labelling: {len(report.worth)}, in {arguments.label_next}")


def _accuracy(found: Accuracy) -> str:
    return (
        f"accuracy {found.share:.1%} ({found.low:.1%} to {found.high:.1%}): {found.right:,} of "
        f"{found.rows:,} texts whose label is known"
    )


def _moment(seconds: int | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


_METRICS_PREFIX = "gru_watch:"


def _exposition(report: Report, model: str, version: str) -> str:
    """Write the report's numbers as samples with the labels `model_name` and `version`."""
    labels = ("model_name", "version")
    index = Gauge(f"{_METRICS_PREFIX}stability_index", (*labels, "quantity"))
    noise = Gauge(f"{_METRICS_PREFIX}stability_index_noise", (*labels, "quantity"))
    outside = Gauge(f"{_METRICS_PREFIX}share_outside", (*labels, "quantity"))
    for finding in report.findings:
        outside.set(finding.outside, model, version, finding.name)
        index.set(finding.stability.value, model, version, finding.name)
        noise.set(finding.stability.noise, model, version, finding.name)
    rows = Gauge(f"{_METRICS_PREFIX}rows", labels)
    rows.set(report.rows, model, version)
    accuracy = Gauge(f"{_METRICS_PREFIX}accuracy", (*labels, "bound"))
    if report.accuracy is not None:
        for bound in ("low", "share", "high"):
            accuracy.set(getattr(report.accuracy, bound), model, version, bound)
    return "".join(
        "\n".join((f"# TYPE {gauge.name} gauge", *lines, ""))
        for gauge in (index, noise, outside, rows, accuracy)
        if (lines := list(gauge.lines()))
    )
