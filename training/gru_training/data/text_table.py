"""Labelled texts in memory, which can be used for a training instead of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gru_training.data.label_cells import TargetKind
from gru_training.data.text_files import LabelledRow


@dataclass(frozen=True)
class TextTable:
    """Labelled texts, with parts for validation and test unless these are to be drawn."""

    rows: Sequence[LabelledRow]
    """Rows to train on, from which missing parts are drawn."""
    validation: Sequence[LabelledRow] | None = None
    test: Sequence[LabelledRow] | None = None
    name: str = "table"
    """Name in reports and in names of runs."""
    kind: TargetKind = "class"
    """Kind of the labels."""
    notes: Sequence[str] = ()
    """Notes for a reader on the form of the labels."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values that describe the table in `config.json` since it has no path; JSON values."""
