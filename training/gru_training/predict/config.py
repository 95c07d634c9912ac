"""What to score; see `gru_training.config`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gru_training.config import OptionalName, OptionalText
from gru_training.tables.file_form import TextFormat

PathName = Annotated[Path, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class PredictConfig:
    """Score every row of a file with a trained run, and write the answers to another file.

    Reads CSV, TSV, JSON lines and lists (plain, .gz or .zst), Parquet, Arrow and Excel; writes
    .csv, .tsv, .jsonl (plain or .gz) and .parquet. The rows keep their order.
    For a text classifier the output has the columns of the file, then label, probability, and one
    column per class under the name of the class. If a column of the file has one of these names,
    it gets input_ before its name; a class called label or probability gets class_. Empty and
    missing texts are answered, too: with what the model says before it has read a word.

    Files may be of any size: memory stays bounded, but for Excel and JSON lists. If the command is
    interrupted or killed, run it again to continue. The output file appears when it is complete.

    gru-train predict runs/tickets --data june.csv --output june-scored.csv

    gru-train predict runs/tickets --data mails.parquet --text-column body --keep id,created
    --output labels.parquet
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run, such as runs/NAME."""
    data: PathName
    """The rows."""
    output: PathName
    """Where the answers go; the end of the name says which kind of file."""
    text_column: OptionalName = None
    """Column with the text; detected if called text, sentence, review, ..."""
    separator: OptionalName = None
    """Character between the columns of a CSV, such as ';', or tab; detected."""
    encoding: OptionalName = None
    """Encoding of a text file, such as cp1252 or utf-16; detected: UTF-8, else Windows-1252."""
    keep: Annotated[OptionalText, tyro.conf.arg(metavar="COLUMN,...")] = None
    """Columns of the file to copy to the output; '' for none. All by default."""
    overwrite: bool = False
    """Replace the output if it is there already."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""

    def __post_init__(self) -> None:
        self.text_format  # noqa: B018  refuses what cannot be

    @property
    def text_format(self) -> TextFormat:
        """How a text file is written, where that is set."""
        return TextFormat(self.separator, self.encoding)
