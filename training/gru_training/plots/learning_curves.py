"""The learning curves of a model, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from gru_training.loop.checkpoint import EpochRecord
from gru_training.plots.picture import save_figure

_TRAIN, _VALIDATION, _MARK = "#7a7a7a", "#0b63b5", "#c0392b"


def draw_curves(
    epochs: Sequence[EpochRecord], best_epoch: int, names: tuple[str, str], path: Path
) -> None:
    """Draw two means over the epochs, training and validation, best epoch marked.

    Args:
        epochs: Records from `gru_training.loop.fit.fit`.
        best_epoch: Number of the best epoch.
        names: Names of the means, as `loss` and `accuracy`.
        path: The PNG file.
    """
    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    numbers = [record.epoch for record in epochs]
    best = next(record for record in epochs if record.epoch == best_epoch)
    for axes, name in zip(figure.subplots(1, 2), names, strict=True):
        validation = [record.validation[name] for record in epochs]
        if name in best.train:  # not a measure of the validation rows alone
            train = [record.train[name] for record in epochs]
            axes.plot(numbers, train, ".--", color=_TRAIN, label="training (with dropout)")
        axes.plot(numbers, validation, ".-", color=_VALIDATION, label="validation")
        axes.axvline(best_epoch, color=_MARK, linewidth=0.8, linestyle=":")
        axes.plot(best_epoch, best.validation[name], "o", color=_MARK, markersize=8, mfc="none",
                  label=f"best epoch {best_epoch}: {best.validation[name]:.4g}")  # fmt: skip
        axes.set_xlabel("epoch")
        axes.set_ylabel(name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.legend(fontsize="small")
    save_figure(figure, path)
