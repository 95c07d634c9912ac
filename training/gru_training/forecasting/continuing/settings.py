"""The settings of a forecaster that goes on from a run."""

from dataclasses import replace

from gru_training.continuing.config import ContinueConfig
from gru_training.continuing.settings import continued_settings, require_file
from gru_training.errors import ConfigError
from gru_training.forecasting.config import ForecastingConfig, SeriesConfig
from gru_training.forecasting.run import ForecastingRun

RATE, EPOCHS = 0.25, 4
"""Share of the old run's learning rate, as the weights are good already; and most epochs."""


def continuation(run: ForecastingRun, wanted: ContinueConfig) -> ForecastingConfig:
    """Those of the run, which leave nothing open.

    Raises:
        DataError: There is no file of new rows.
        ConfigError: The run cannot be continued, or not so.
    """
    if wanted.only_new:
        raise ConfigError(
            "--only-new is for runs of texts; forecasts of a series look back on its old rows"
        )
    if wanted.drop_small_classes:
        raise ConfigError("--drop-small-classes is for runs of texts, got a forecaster")
    require_file(wanted)
    if run.given is not None:
        raise ConfigError(
            f"{run.path} was trained in Python on a table in memory; go on from it there, with "
            "partial_fit of the estimator"
        )
    return continued_config(run, wanted)


def continued_config(run: ForecastingRun, wanted: ContinueConfig) -> ForecastingConfig:
    """As `continuation`, wherever the series of the run and the new rows are.

    Raises:
        ConfigError: The run averages others.
    """
    changed = continued_settings(run, wanted, RATE, EPOCHS)
    data = replace(_with_shares(run), drop_bad=run.config.data.drop_bad or wanted.drop_bad)
    changed["training"] = replace(changed["training"], distribute="none")
    return replace(run.config, data=data, **changed)


def _with_shares(run: ForecastingRun) -> SeriesConfig:
    """Its settings; published borders, after which no row is read, as shares of the rows."""
    data = run.config.data
    if not run.series.published_split:
        return data
    train, validation, end = run.series.borders
    return replace(
        data,
        validation_fraction=(validation - train) / end,
        test_fraction=(end - validation) / end,
    )
