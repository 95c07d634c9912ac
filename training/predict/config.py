"""What to score; see :mod:`training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from training.config import OptionalName

PathName = Annotated[Path, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class PredictConfig:
    """Answer every row of a file with a trained run, into another file.

    .csv, .tsv, .jsonl (plain or .gz) and .parquet, in and out. The rows keep their order. Of a
    text classifier the output has label, probability and a column with the probability of each
    class under the name of the class, behind the columns of the file; a column of the file that
    is called like one of these gets input_ before its name, and a class that is called label or
    probability gets class_. An empty or missing text is answered, too: with what the model says
    before it has read a word.

    Files of any size: memory stays bounded. Interrupted or killed, the same command goes on where
    it stopped. The output appears when it is whole.

    gru-train predict runs/tickets --data june.csv --output june-scored.csv

    gru-train predict runs/tickets --data mails.parquet --text-column body --keep id,created
    --output labels.parquet
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run, as runs/NAME."""
    data: PathName
    """The rows."""
    output: PathName
    """Where the answers go; the end of the name says which kind of file."""
    text_column: OptionalName = None
    """Column with the text; found by itself when called text, sentence, review, ..."""
    keep: Annotated[str | None, tyro.conf.arg(metavar="COLUMN,...")] = None
    """Columns of the file that the output has, too; '' for none. All by default."""
    overwrite: bool = False
    """Replace the output if it is there already."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""
