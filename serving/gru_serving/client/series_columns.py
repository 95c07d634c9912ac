"""The columns of a forecaster, as named by its signature `columns`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gru_serving.client.interface import Client
from gru_serving.errors import InvalidArgument

SIGNATURE, BY_NAME = "columns", "by_name"


@dataclass(frozen=True)
class SeriesColumns:
    """The columns that a forecaster reads and forecasts.

    Attributes:
        names: Column names, in the order of its input `history`.
        needed: Columns without which there is no forecast.
        forecast: Columns that it forecasts.
        future: Columns that it reads of the steps ahead, in the order of its input `future`.
        horizon: Steps of `future` that it reads; 0 where it reads none.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    forecast: tuple[str, ...]
    future: tuple[str, ...] = ()
    horizon: int = 0

    @property
    def optional(self) -> tuple[str, ...]:
        """The columns that may be left out."""
        return tuple(name for name in self.names if name not in self.needed)


def series_columns(client: Client, model: str, **target: Any) -> SeriesColumns | None:
    """Return the columns of a forecaster; None for a model without named columns.

    Args:
        client: Client of a server.
        model: Name of the model.
        **target: `version` and `label`.

    Raises:
        ServingError: The server does not answer.
    """
    signatures = client.metadata(model, **target).signatures
    if SIGNATURE not in signatures:
        return None
    asked = {"names": np.array([[b""]], object)}
    answer = client.predict(asked, model, signature=SIGNATURE, **target)
    names, forecast, future = (
        tuple(name.decode("utf-8", "replace") for name in answer[key][0]) if key in answer else ()
        for key in ("columns", "forecast_columns", "future_columns")
    )
    ahead = signatures[BY_NAME].inputs.get("future") if BY_NAME in signatures else None
    horizon = ahead.shape[1] if ahead is not None and ahead.shape is not None else 0
    needed = tuple(name for name, wanted in zip(names, answer["needed"][0], strict=True) if wanted)
    return SeriesColumns(names, needed, forecast, future, horizon)


def named_history(
    columns: Mapping[str, Sequence[float]],
    future: Mapping[str, Sequence[float]] | None = None,
    timestamp: str | None = None,
) -> dict[str, np.ndarray]:
    """Return the inputs of the signature `by_name` for one series.

    Args:
        columns: Values over time by column name, NaN where one is missing; in any order.
        future: Known inputs of the steps ahead, likewise, for a model that reads such.
        timestamp: The time of the last value, as `2024-05-31 13:00:00`, for a model that reads
            the calendar.

    Raises:
        InvalidArgument: No columns are given, or they differ in length.
    """
    history, names = _by_name("columns", columns)
    inputs = {"history": history, "columns": names}
    if timestamp is not None:
        inputs["timestamp"] = np.array([timestamp.encode()], object)
    if future is not None:
        inputs["future"], inputs["future_columns"] = _by_name("future", future)
    return inputs


def _by_name(name: str, columns: Mapping[str, Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Arrange values (1, T, N) and names (1, N) for the signature `by_name`."""
    lengths = {column: len(values) for column, values in columns.items()}
    if not lengths or len(set(lengths.values())) > 1:
        raise InvalidArgument(f"{name}: expected some of one length; got {lengths}")
    values = np.stack([np.asarray(each, np.float32) for each in columns.values()], axis=-1)
    return values[np.newaxis], np.array([[column.encode() for column in columns]], object)
