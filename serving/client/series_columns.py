"""The columns of a forecaster, as its signature `columns` names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serving.client.interface import Client
from serving.errors import InvalidArgument

SIGNATURE, BY_NAME = "columns", "by_name"


@dataclass(frozen=True)
class SeriesColumns:
    """What a forecaster reads.

    Attributes:
        names: In the order of its input `history`.
        needed: Those without which there is no forecast.
        forecast: Those that it forecasts.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    forecast: tuple[str, ...]

    @property
    def optional(self) -> tuple[str, ...]:
        """Those that may be left out."""
        return tuple(name for name in self.names if name not in self.needed)


def series_columns(client: Client, model: str, **target: Any) -> SeriesColumns | None:
    """The columns of a forecaster; None of a model that does not know them by name.

    Args:
        client: Of a server.
        model: Name of the model.
        **target: `version` and `label`.

    Raises:
        ServingError: The server does not answer.
    """
    if SIGNATURE not in client.metadata(model, **target).signatures:
        return None
    asked = {"names": np.array([[b""]], object)}
    answer = client.predict(asked, model, signature=SIGNATURE, **target)
    names, forecast = (
        tuple(name.decode("utf-8", "replace") for name in answer[key][0])
        for key in ("columns", "forecast_columns")
    )
    needed = tuple(name for name, wanted in zip(names, answer["needed"][0], strict=True) if wanted)
    return SeriesColumns(names, needed, forecast)


def named_history(columns: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    """The inputs of the signature `by_name` for one series.

    Args:
        columns: Values over time by column name, NaN where one is missing; in any order.

    Raises:
        InvalidArgument: There are none, or they differ in length.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if not lengths or len(set(lengths.values())) > 1:
        raise InvalidArgument(f"columns: expected some of one length; got {lengths}")
    values = np.stack([np.asarray(each, np.float32) for each in columns.values()], axis=-1)
    names = np.array([[name.encode() for name in columns]], object)
    return {"history": values[np.newaxis], "columns": names}
