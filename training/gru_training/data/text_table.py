"""Labelled texts in memory, which a training accepts instead of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gru_training.data.label_cells import TargetKind
from gru_training.data.text_files import LabelledRow


@dataclass(frozen=True)
class TextTable:
    """Labelled texts, with parts for validation and test unless these are to be drawn."""

    rows: Sequence[LabelledRow]
    """To train on, and to draw those parts from that are not given."""
    validation: Sequence[LabelledRow] | None = None
    test: Sequence[LabelledRow] | None = None
    name: str = "table"
    """What it is called in reports and run names."""
    kind: TargetKind = "class"
    """Of the labels."""
    notes: Sequence[str] = ()
    """What a reader should know of how the labels are written."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What `config.json` is to say of it, as JSON values: a table has no path."""
