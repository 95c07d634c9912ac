"""Series read, split and scaled with the settings of their rows alone."""

from gru_training.forecasting.data import prepare, read_series


def load_forecasting_data(config):
    """The series of these settings, on the scale of its training rows."""
    return prepare(read_series(config), config)
