"""Numbers in the cells of tables, with decimal points or decimal commas."""

import math
import re
from typing import Any

from gru_training.tables.rows import cell_text

MISSING = ("", "na", "nan", "n/a", "null", "none", "-", "?")
"""Contents of the cell of a missing number, in any case."""
_DECIMAL_COMMA = re.compile(
    r"[+-]?(\d*|\d{1,3}(\.\d{3})+|\d{1,3}([ \u00a0\u202f']\d{3})+),\d+([eE][+-]?\d+)?"
)
"""Pattern of a number with a decimal comma, optionally with separators between thousands."""
_POINT_OF_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
"""Pattern of a number with a point that may separate thousands."""
_FEWEST_POINTS = 5
"""Number of cells from which points of that pattern are noted."""
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([.,'\u00a0\u202f ]\d{3})+([.,]\d+)?")
"""Pattern of a number with separators between thousands."""
_DECORATED = re.compile(r"\d\s*[)%‰$€£¥]|[($€£¥]\s*[+-]?\d")
"""Pattern of a number with a sign of a currency or of per cent, or in parentheses."""

_TRUTH = {"true": 1.0, "false": 0.0}
"""Numbers of truth values, as programs write them."""
_YES_AND_NO = ("yes", "no", "y", "n", "ja", "nein", "oui", "non")
"""Words of people for yes and no, in small letters."""


class OtherFormError(ValueError):
    """A value in a form that is not read: it can be written otherwise, and is not to be lost."""


class Numbers:
    """Reads the numbers of a table, all with the same decimal mark.

    Decimal commas are read unless commas separate cells.

    Args:
        separator: The character between cells; empty where a table has none.
    """

    def __init__(self, separator: str):
        self._separator = separator
        self._point = self._comma = ""
        self._thousands = 0

    def read(self, cell: Any) -> float:
        """Read the number in a cell, NaN if it is missing, 1 and 0 of true and false.

        Raises:
            ValueError: There is no finite number, or which one is not clear; says why.
        """
        if isinstance(cell, int | float):
            try:
                return math.nan if cell != cell else self._finite(float(cell), cell)
            except OverflowError:  # an integer of hundreds of digits
                return self._finite(math.inf, cell)
        text = (cell_text(cell) or "").strip()
        if text.lower() in MISSING:
            return math.nan
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        if "," in text:
            return self._with_comma(text)
        if "." in text:
            if self._comma:
                raise OtherFormError(
                    f"expected a decimal comma as in {self._comma!r} before, got {text!r:.40}"
                )
            self._count_point(text)
        try:
            value = math.nan if "_" in text else float(text)  # only Python reads 1_000 as a number
        except ValueError:
            value = math.nan
        return self._finite(value, text)

    def note(self) -> str | None:
        """Note how numbers with a comma were read, or points that may separate thousands, if any.

        Such points are noted of tables that may have decimal commas.
        """
        if self._thousands >= _FEWEST_POINTS and self._separator not in ("", ","):
            return (
                f"numbers are read with decimal points: {self._point!r} is "
                f"{float(self._point):g}; all have three digits behind them: if points separate "
                "thousands, take them out"
            )
        if not self._comma:
            return None
        value = self._value(self._comma)
        return f"numbers are read with decimal commas: {self._comma!r} is {value:g}"

    def _count_point(self, text: str) -> None:
        if not self._point or self._thousands:  # all so far may separate thousands
            self._thousands += 1
            if not _POINT_OF_THOUSANDS.fullmatch(text):
                self._thousands = 0
        self._point = self._point or text

    def _with_comma(self, text: str) -> float:
        if not _DECIMAL_COMMA.fullmatch(text):
            raise _no_number(text)
        if self._separator in ("", ","):
            raise OtherFormError(
                f"expected a number with a decimal point, got {text!r:.40}; decimal commas are "
                "read where semicolons or tabs separate columns"
            )
        if self._point:
            raise OtherFormError(
                f"expected a decimal point as in {self._point!r} before, got {text!r:.40}"
            )
        self._comma = self._comma or text
        return self._finite(self._value(text), text)

    @staticmethod
    def _value(text: str) -> float:
        whole, _, decimals = text.partition(",")
        return float(re.sub(r"[. \u00a0\u202f']", "", whole) + "." + decimals)

    @staticmethod
    def _finite(value: float, cell: Any) -> float:
        if not math.isfinite(value):
            raise _no_number(cell)
        return value


def _no_number(cell: Any) -> ValueError:
    """Make the error about a cell that is neither a number nor empty."""
    hint = ""
    if isinstance(cell, str) and _DECORATED.search(cell):
        hint = "; write numbers without units or percent signs, and negative ones with a minus sign"
    elif isinstance(cell, str) and _THOUSANDS.fullmatch(cell):
        hint = "; write numbers without separators between thousands"
    elif str(cell).lower() in _YES_AND_NO:
        hint = "; write 1 for yes and 0 for no"
    kind = OtherFormError if hint else ValueError
    return kind(f"expected a number or an empty cell, got {cell!r:.40}{hint}")
