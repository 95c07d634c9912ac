import pytest
from matplotlib.image import imread

from gru_training.loop.checkpoint import EpochRecord
from gru_training.plots.learning_curves import draw_curves


@pytest.mark.parametrize("epochs", [1, 7])
def test_curves_are_drawn(tmp_path, epochs):
    records = [
        EpochRecord(
            i + 1,
            {"loss": 1 / (i + 1), "accuracy": 0.5},
            {"loss": 1 / (i + 2), "accuracy": 0.6},
            0.1,
            1.0,
        )
        for i in range(epochs)
    ]
    draw_curves(records, epochs, ("loss", "accuracy"), tmp_path / "c.png")
    image = imread(tmp_path / "c.png")
    assert image.shape[1] > 900
    assert image.std() > 0.05  # not blank
