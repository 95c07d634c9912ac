"""What known inputs add to a series, as a picture."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure

from training.forecasting.data import ForecastingData
from training.plots.picture import plain_label, save_figure

_MODEL, _OTHERS = "#0b63b5", ("#e08214", "#2c9c4a", "#8e44ad")
_MOST_INPUTS, _POINTS = 6, 200


def draw_known_inputs(data: ForecastingData, path: Path) -> None:
    """Draw what each known input adds to the first targets over the values it had in training.

    The other inputs are at their means, and nothing is added at the mean of all. Targets are in
    their own units (of a power of them, where that is learned); of those on a logarithmic scale
    the factor is shown.

    Args:
        data: With known inputs.
        path: Of the PNG file.
    """
    known, scale = data.preprocessor.known, data.preprocessor
    assert known is not None
    shown = known.columns[:_MOST_INPUTS]
    targets = list(enumerate(data.shape.targets))[: 1 + len(_OTHERS)]
    rows = -(-len(shown) // 2) if len(shown) > 1 else 1
    figure = Figure(figsize=(10, 2.6 * rows + 0.4), dpi=120, layout="constrained")
    panels = figure.subplots(rows, min(2, len(shown)), squeeze=False).ravel()
    for place, column in enumerate(shown):
        axes = panels[place]
        train = data.series.values[: data.borders.train, column]
        values = np.linspace(np.nanmin(train), np.nanmax(train), _POINTS)
        inputs = np.zeros((_POINTS, len(known.columns)))
        inputs[:, place] = (values - scale.mean[column]) / scale.deviation[column]
        added = known(tf.constant(inputs)).numpy() - known(tf.constant(inputs[:1] * 0)).numpy()
        for (k, target), colour in zip(targets, (_MODEL, *_OTHERS), strict=False):
            curve = added[:, k] * scale.deviation[target]
            curve = np.exp(curve) if scale.multiplies(target) else curve
            axes.plot(values, curve, color=colour, label=plain_label(data.target_columns[k]))
        axes.set_xlabel(plain_label(data.series.columns[column]))
        axes.set_ylabel("factor" if scale.multiplies(targets[0][1]) else "added, own units")
        axes.grid(alpha=0.25)
        if len(targets) > 1 and not place:
            axes.legend(fontsize="small")
    for unused in panels[len(shown) :]:
        unused.set_visible(False)
    save_figure(figure, path)
