"""What a search for settings judges them by."""

from typing import NamedTuple

FEWEST_PARTS = 5
"""Parts of the validation rows, as forecasts that do not overlap, from which on two trials can be
told apart."""


class Criterion(NamedTuple):
    """What a search judges settings by, on validation rows."""

    name: str
    higher_is_better: bool
    style: str
    """How to write a value, as `.1%`."""
    measure: str
    """What the task itself calls it."""
    caution: str = ""
    """Why it tells settings apart badly; empty where it does not."""


def caution(few: str) -> str:
    """What to say where there is too little to choose by, as "only 3 rows"."""
    return (
        f"{few}: what did best on so few is mostly chance, and the defaults may do better on new "
        "ones"
    )
