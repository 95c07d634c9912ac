"""A file of texts in, a file with a server's answers out: `gru-serve predict --data`.

What reads and writes tables is imported when a file is scored: other commands do without.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gru_serving.client import Client
from gru_serving.commands.files.series_csv import text_format
from gru_serving.commands.terminal.safe_text import safe_text
from gru_serving.errors import InvalidArgument

USAGE_ERROR, INTERRUPTED = 2, 130


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --data and what belongs to it."""
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


def score_file(arguments: argparse.Namespace, client: Client) -> int:
    """Send the rows of `arguments.data`, and write `arguments.output`.

    Returns:
        0; 2 where file or arguments cannot be used; 130 when interrupted.

    Raises:
        ServingError: The server's; what is answered by then is kept.
    """
    from rich.console import Console

    from gru_serving.commands.files.served_model import ServedModel
    from gru_training.errors import InterruptedWork, TrainingError
    from gru_training.scoring.file_job import FileJob
    from gru_training.tables.text_columns import TEXT_COLUMNS

    if arguments.in_flight < 1:
        raise InvalidArgument(f"--in-flight: expected at least 1; got {arguments.in_flight}")
    console = Console(soft_wrap=True)
    errors = Console(stderr=True, soft_wrap=True)
    try:
        model = ServedModel(client, arguments)
        job = FileJob(
            Path(arguments.data),
            Path(arguments.output),
            {"text": (*TEXT_COLUMNS, model.input_name.lower())},
            columns={"text": arguments.text_column} if arguments.text_column else {},
            keep=None if arguments.keep is None else list(filter(None, arguments.keep.split(","))),
            overwrite=arguments.overwrite,
            console=console,
            given=text_format(arguments),
        )
        console.print(
            f"model   {safe_text(arguments.model)} version {model.version} at {client.url}",
            markup=False,
            highlight=False,
        )
        scored = job.run(model)
    except TrainingError as error:
        if arguments.debug:
            raise
        errors.print(f"gru-serve predict: {safe_text(error)}", markup=False, highlight=False)
        return USAGE_ERROR
    except InterruptedWork as stop:
        errors.print(f"gru-serve predict: {stop.message}", markup=False, highlight=False)
        return INTERRUPTED
    console.print(scored.summary(), highlight=False)
    console.print(f"output  {arguments.output}", markup=False, highlight=False)
    return 0
