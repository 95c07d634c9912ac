"""What happens to a forecaster's requests before a graph of ONNX: the checks of its signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gru_training.native.signatures import NativeSignature, Step

_ANSWERS = {"forecast": "forecast", "quantiles": "quantiles"}


class ForecastingChecks:
    """The steps that `gru_serving.engine.onnx.steps` does for each signature.

    Args:
        columns: The C names.
        targets: The K column numbers that are forecast.
        read: Numbers of the columns without which there is no forecast.
        lookback: Steps read; None for all of a history.
        panel: Whether columns may be without any value.
    """

    def __init__(
        self,
        columns: Sequence[str],
        targets: Sequence[int],
        read: Sequence[int],
        lookback: int | None,
        panel: bool,
    ) -> None:
        self._count = len(columns)
        self._names: dict[str, Any] = {
            "columns": list(columns),
            "targets": list(targets),
            "read": list(read),
        }
        self.history: list[Step] = [
            require_shape("history", None, None, self._count),
            {"do": "require_steps", "of": "history", "least": lookback or 1},
            {"do": "require_finite", "of": "history"},
        ]
        if not panel:
            values: Step = {
                "do": "require_values",
                "of": "history",
                "last": lookback,
                "columns": list(read),
                "names": [columns[number] for number in read],
            }
            self.history.append(values)

    def step(self, state_size: int) -> list[Step]:
        """Of the signature `step`."""
        return [
            require_shape("value", None, self._count),
            require_shape("state", None, state_size),
            {"do": "require_finite", "of": "value"},
        ]

    def by_name(self, graph: str) -> NativeSignature:
        """`by_name`: the columns are put in order, and the rest is `serving_default`."""
        steps: list[Step] = [
            require_shape("history", None, None, None),
            require_shape("columns", None, None),
            {"do": "order_columns", "of": "history", "by": "columns", **self._names},
            *self.history,
        ]
        return NativeSignature(graph, _ANSWERS, steps)

    def columns(self) -> NativeSignature:
        """`columns`, which needs no graph."""
        steps: list[Step] = [
            require_shape("names", None, None),
            {"do": "find_columns", "from": "names", **self._names},
        ]
        made = ("columns", "place", "needed", "forecast_columns")
        return NativeSignature(None, {name: name for name in made}, steps)


def one_series_checks() -> list[Step]:
    """Of the signature `one_series`."""
    return [
        require_shape("history", None, None),
        {"do": "require_some", "of": "history"},
        {"do": "require_finite", "of": "history"},
    ]


def require_shape(name: str, *sizes: int | None) -> Step:
    """The step that refuses another number of axes, or of values in the last one."""
    return {"do": "require_shape", "of": name, "sizes": list(sizes)}
