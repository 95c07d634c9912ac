"""Local times in the graph."""

from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf


class TimeZone:
    """From local time to UTC and back, by a table of the changes of clocks.

    All times are seconds since 1970, int64.

    Args:
        name: As `Europe/Berlin`.
        first: The first year of which changes are known.
        last: The last one.
    """

    def __init__(self, name: str, first: int, last: int) -> None:
        utc = pd.date_range(f"{first}-01-01", f"{last + 1}-01-02", freq="30min", tz="UTC")
        local = utc.tz_convert(name).tz_localize(None)
        shift = (local - utc.tz_localize(None)).total_seconds().to_numpy().astype(np.int64)
        changed = np.flatnonzero(np.diff(shift, prepend=shift[0] + 1))
        self._begin, self._shift = utc.as_unit("s").asi8[changed], shift[changed]

    def to_local(self, seconds: Any) -> Any:
        """Of times in UTC, of any shape."""
        return seconds + self._shifts(self._begin[1:], seconds)

    def to_utc(self, seconds: Any) -> Any:
        """Of local times; one that is there twice is the earlier one."""
        return seconds - self._shifts(self._begin[1:] + self._shift[:-1], seconds)

    def _shifts(self, ends: np.ndarray, seconds: Any) -> Any:
        """What clocks add to UTC, each shift until its end."""
        place = tf.searchsorted(tf.constant(ends), tf.reshape(seconds, [-1]), side="right")
        return tf.reshape(tf.gather(tf.constant(self._shift), place), tf.shape(seconds))
