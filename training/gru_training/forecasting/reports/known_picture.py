"""What known inputs add to a series, as a picture."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.known.effect import KnownEffect
from gru_training.plots.picture import plain_label, save_figure

_MODEL, _OTHERS = "#0b63b5", ("#e08214", "#2c9c4a", "#8e44ad")
_MOST_INPUTS, _POINTS = 6, 200


def draw_known_inputs(data: ForecastingData, path: Path) -> None:
    """Draw what each known input adds to the first targets over the values it had in training.

    The other inputs are at their means, and nothing is added at the mean of all. Targets are in
    their own units (of a power of them, where that is learned); of those on a logarithmic scale
    the factor is shown. Of a panel it is the median over the series, and what lies between the
    tenth and the ninetieth hundredth of them.

    Args:
        data: With known inputs.
        path: Of the PNG file.
    """
    known = data.preprocessor.known
    assert known is not None
    count = min(len(known.knots), _MOST_INPUTS)
    rows = -(-count // 2) if count > 1 else 1
    figure = Figure(figsize=(10, 2.6 * rows + 0.4), dpi=120, layout="constrained")
    panels = figure.subplots(rows, min(2, count), squeeze=False).ravel()
    for place in range(count):
        (_draw_panel if known.by_series else _draw_targets)(panels[place], data, known, place)
        panels[place].grid(alpha=0.25)
    for unused in panels[count:]:
        unused.set_visible(False)
    save_figure(figure, path)


def _draw_targets(axes: Axes, data: ForecastingData, known: KnownEffect, place: int) -> None:
    scale, column = data.preprocessor, known.columns[place]
    targets = list(enumerate(data.shape.targets))[: 1 + len(_OTHERS)]
    train = data.series.values[: data.borders.train, column]
    values = np.linspace(np.nanmin(train), np.nanmax(train), _POINTS)
    inputs = np.zeros((_POINTS, len(known.columns)))
    inputs[:, place] = (values - scale.mean[column]) / scale.deviation[column]
    added = _added(known, inputs)
    for (k, target), colour in zip(targets, (_MODEL, *_OTHERS), strict=False):
        curve = added[:, k] * scale.deviation[target]
        curve = np.exp(curve) if scale.multiplies(target) else curve
        axes.plot(values, curve, color=colour, label=plain_label(data.target_columns[k]))
    axes.set_xlabel(plain_label(data.series.columns[column]))
    axes.set_ylabel("factor" if scale.multiplies(targets[0][1]) else "added, own units")
    if len(targets) > 1 and not place:
        axes.legend(fontsize="small")


def _draw_panel(axes: Axes, data: ForecastingData, known: KnownEffect, place: int) -> None:
    scale, count = data.preprocessor, len(known.knots)
    columns, targets = list(known.columns[place::count]), list(data.shape.targets)
    train = data.series.values[: data.borders.train, columns]
    read = (train - scale.mean[columns]) / scale.deviation[columns]
    standardised = np.linspace(np.nanmin(read), np.nanmax(read), _POINTS)
    inputs = np.zeros((_POINTS, len(targets), count))
    inputs[..., place] = standardised[:, np.newaxis]
    added = _added(known, inputs.reshape(_POINTS, -1))  # (points, K)
    logarithmic = all(map(scale.multiplies, targets))
    if logarithmic:
        added = np.exp(added * scale.deviation[targets])
    mean, deviation = scale.mean[columns], scale.deviation[columns]
    alike = bool((mean == mean[0]).all())
    values = standardised * deviation[0] + mean[0]
    values = values if alike else values / mean[0]
    low, middle, high = np.quantile(added, (0.1, 0.5, 0.9), axis=1)
    axes.fill_between(values, low, high, color=_MODEL, alpha=0.2, linewidth=0)
    axes.plot(values, middle, color=_MODEL)
    names = *data.series.inputs, *data.series.calendar.columns
    name = plain_label(names[place])
    axes.set_xlabel(name if alike else f"{name}, over its mean in each series")
    axes.set_ylabel("factor" if logarithmic else "added, deviations of a series")


def _added(known: KnownEffect, inputs: np.ndarray) -> np.ndarray:
    """(points, K), against inputs at their means."""
    return np.asarray(known(tf.constant(inputs)) - known(tf.constant(inputs[:1] * 0)))
