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
_DECORATED = re.compile(r"\d\s*[)%‰$€£¥]|[($€£¥]\s*[+-]?\d")
"""Pattern of a number with a sign of a currency or of per cent, or in parentheses."""


class Numbers:
    """Reads the numbers of a table, all with the same decimal mark.

    Decimal commas are read unless commas separate cells.

    Args:
        separator: The character between cells; empty where a table has none.
    """

    def __init__(self, separator: str):
        self._separator = separator
        self._point = self._comma = ""

    def read(self, cell: Any) -> float:
        """Read the number in a cell, NaN if it is missing.

        Raises:
            ValueError: There is no finite number, or which one is not clear; says why.
        """
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            try:
                return math.nan if cell != cell else self._finite(float(cell), cell)
            except OverflowError:  # an integer of hundreds of digits
                return self._finite(math.inf, cell)
        text = (cell_text(cell) or "").strip()
        if text.lower() in MISSING:
            return math.nan
        if "," in text:
            return self._with_comma(text)
        if "." in text:
            if self._comma:
                raise ValueError(
                    f"expected a decimal comma as in {self._comma!r} before, got {text!r:.40}"
                )
            self._point = self._point or text
        try:
            value = math.nan if "_" in text else float(text)  # only Python reads 1_000 as a number
        except ValueError:
            value = math.nan
        return self._finite(value, text)

    def note(self) -> str | None:
        """Note how numbers with a comma were read; None if there were none."""
        if not self._comma:
            return None
        value = self._value(self._comma)
        return f"numbers are read with decimal commas: {self._comma!r} is {value:g}"

    def _with_comma(self, text: str) -> float:
        if not _DECIMAL_COMMA.fullmatch(text):
            raise ValueError(_no_number(text))
        if self._separator in ("", ","):
            raise ValueError(
                f"expected a number with a decimal point, got {text!r:.40}; decimal commas are "
                "read where semicolons or tabs separate columns"
            )
        if self._point:
            raise ValueError(
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
            raise ValueError(_no_number(cell))
        return value


def _no_number(cell: Any) -> str:
    """Write the error about a cell that is neither a number nor empty."""
    hint = "; write numbers without units or percent signs, and negative ones with a minus sign"
    shown = hint if isinstance(cell, str) and _DECORATED.search(cell) else ""
    return f"expected a number or an empty cell, got {cell!r:.40}{shown}"
