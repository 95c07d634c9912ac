"""Answers of a model as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gru_serving.client.class_names import MOST_NAMES, likeliest
from gru_serving.client.results import Forecast
from gru_serving.commands.terminal.safe_text import safe_text

_WIDEST = 1 << 20
_FIRST = ("label", "labels", "value", "probability", "scores")


def print_answers(
    inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray], classes: Sequence[str]
) -> None:
    """Print a line per example, or one per output where the outputs are not per example.

    Args:
        inputs: By name; texts are shown beside the answers.
        outputs: By name.
        classes: Names of the columns of `scores`, if known.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = {name: array for name, array in inputs.items() if array.dtype == object}
    order: list[str] = [name for name in _FIRST if name in outputs]
    order += [name for name in outputs if name not in order]
    columns = {**shown, **{name: outputs[name] for name in order}}
    if 0 < len(classes) <= MOST_NAMES and not columns.keys() & set(classes):
        scores = columns.pop("scores")
        columns.update(zip(classes, scores.T, strict=True))
    elif classes:
        columns["scores"] = likeliest(columns["scores"], classes)
    console = Console()
    batch = batch_size([*inputs.values(), *outputs.values()])
    if batch is None:
        for name in order:
            shape = list(outputs[name].shape)
            console.print(Text(f"{safe_text(name)} {shape}: {_cell(outputs[name])}"))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(Text(safe_text(name)), overflow="fold")
    for i in range(batch):
        table.add_row(*(Text(_cell(array[i])) for array in columns.values()))
    console.print(table)


def print_forecasts(forecasts: Sequence[Forecast]) -> None:
    """Print a line per step ahead; for each column the forecast and its widest interval."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    for number, forecast in enumerate(forecasts, 1):
        table = Table(box=None, pad_edge=False, header_style="bold")
        if len(forecasts) > 1:
            table.title = f"series {number}"
        columns = forecast.values.shape[1]
        table.add_column("step", justify="right", no_wrap=True)
        for column in range(1, columns + 1):
            name = "forecast" if columns == 1 else f"forecast {column}"
            table.add_column(name, justify="right", no_wrap=True)
            table.add_column("interval", no_wrap=True)
        for step, (values, quantiles) in enumerate(
            zip(forecast.values, forecast.quantiles, strict=True), 1
        ):
            cells = [
                Text(text)
                for value, of_value in zip(values, quantiles, strict=True)
                for text in (f"{value:.5g}", f"[{of_value[0]:.5g}, {of_value[-1]:.5g}]")
            ]
            table.add_row(str(step), *cells)
        # Numbers must not be cut: the terminal folds lines that are too wide.
        screen = Console()
        wide = screen.measure(table, options=screen.options.update(width=_WIDEST)).maximum
        Console(width=max(screen.width, wide)).print(table)


def _cell(value: Any) -> str:
    """One example's part of a tensor, short enough to read."""
    if isinstance(value, bytes):
        return safe_text(value.decode("utf-8", "replace"))
    if isinstance(value, np.ndarray) and value.ndim:
        if value.size > 64:
            shown = np.array2string(value, precision=4, threshold=16, edgeitems=2)
            return shown if value.dtype != object else safe_text(shown)
        if value.ndim == 1:
            return " ".join(_cell(item) for item in value)
        return safe_text(value.tolist())
    if isinstance(value, np.ndarray):
        return _cell(value.item())
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return safe_text(value)


def batch_size(arrays: Sequence[np.ndarray]) -> int | None:
    """The number of examples, if all arrays have the same number of rows."""
    sizes = {len(array) if array.ndim else None for array in arrays}
    return sizes.pop() if len(sizes) == 1 else None
