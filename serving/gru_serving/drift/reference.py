"""`assets.extra/reference.json` of a version: distributions of its held-out rows and answers.

`gru-serve export` writes it. It holds counts, class names and column names, and no row. It
describes held-out rows because the words of training rows are all known and the model is too
certain about them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gru_serving.codecs.json_predict import read_json
from gru_serving.drift.histogram import NameBins, NumberBins, bins_from_json
from gru_serving.drift.quantities import Rows
from gru_serving.errors import InvalidArgument, NotFound

FILE = Path("assets.extra", "reference.json")
_FORMAT = 1


class Distribution(NamedTuple):
    """Histogram of one quantity."""

    bins: NumberBins | NameBins
    counts: np.ndarray


@dataclass(frozen=True)
class Reference:
    """The distributions of the rows with which later ones are compared.

    Attributes:
        rows: Number of rows.
        quantities: Histogram of each quantity, by name.
        columns: Names of the columns of series, by the name of the tensor.
    """

    rows: int
    quantities: Mapping[str, Distribution]
    columns: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, rows: Rows, columns: Mapping[str, Sequence[str]]) -> Reference:
        """Count the values of rows; a quantity that no row has is left out."""
        found = {}
        for name, values in rows.numbers.items():
            if not np.isnan(values).all():
                bins = NumberBins.of(values)
                found[name] = Distribution(bins, bins.counts(values))
        for name, names in rows.names.items():
            named = NameBins.of(names)
            found[name] = Distribution(named, named.counts(names))
        return cls(len(rows), found, columns)

    def write(self, version: Path) -> None:
        """Write the file into a version."""
        content = {
            "format": _FORMAT,
            "rows": self.rows,
            "columns": self.columns,
            "quantities": {
                name: {"bins": asdict(one.bins), "counts": one.counts.tolist()}
                for name, one in self.quantities.items()
            },
        }
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (version / FILE).write_text(f"{text}\n", "utf-8")

    @classmethod
    def read(cls, version: Path) -> Reference:
        """Read the reference of a version.

        Raises:
            NotFound: The version has no reference.
            InvalidArgument: The file is not what an export writes.
        """
        path = version / FILE
        try:
            content = read_json(path.read_text("utf-8"))
            if content["format"] != _FORMAT:
                raise InvalidArgument(
                    f"{path}: expected format {_FORMAT}, got {content['format']!r}; it was written "
                    "by another release"
                )
            quantities = {
                name: Distribution(bins_from_json(one["bins"]), np.array(one["counts"]))
                for name, one in content["quantities"].items()
            }
            return cls(int(content["rows"]), quantities, content["columns"])
        except FileNotFoundError:
            raise NotFound(
                f"{path}: expected what the model's data were like, found none; `gru-serve export` "
                "of this release writes it, so export the run again"
            ) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgument(f"{path}: not the file of an export: {error!r}") from None
