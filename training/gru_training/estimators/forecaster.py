"""A forecaster to train on tables and to ask what comes next."""

from typing import TYPE_CHECKING, Any

from rich.console import Console

from gru_training.estimators.run_estimator import (
    load_tensorflow,
)
from gru_training.estimators.series_table import (
    recent_rows,
    tested_rows,
)
from gru_training.estimators.series_training import SETTINGS, SeriesTraining
from gru_training.estimators.settings import in_python, takes

if TYPE_CHECKING:
    import pandas as pd


@takes(SETTINGS)
class Forecaster(SeriesTraining):
    """A GRU forecaster, as `gru-train forecasting` trains it.

    It writes the same run directory, and with the same rows and settings gets the same weights.
    Columns in `future` (prices, weather forecasts) are read of the steps that are forecast as
    well: `predict` takes them. Those of `calendar="auto"` and `holidays="DE"` follow from the
    times.

    Args:
        **settings: Any option of `gru-train forecasting` by its name without dashes
            (`target=["load"]`, `horizon=48`, `lookback=336`, `linear_skip=True`,
            `runs_dir="runs"`, `name="load"`), and `preset` to begin with others than the
            defaults.

    Attributes:
        run_: The run directory (`gru_training.forecasting.run.ForecastingRun`).

    Example:
        >>> forecaster = Forecaster(horizon=24).fit(load)
        >>> forecaster.predict()  # the 24 hours after the last one
    """

    def __init__(self, **settings: Any):
        super().__init__(**settings)

    def predict(
        self, horizon: int | None = None, *, data: Any = None, future: Any = None
    ) -> "pd.DataFrame":
        """Forecast what comes next.

        Args:
            horizon: Steps; by default all that the model was trained for, which is the most.
            data: Newer values of the same columns, found by name, or the path of a file with
                them; by default the forecast begins after the series of the training. Rows at
                the end that have no value yet are left out, and too few rows are appended to the
                end of that series where they continue it.
            future: Known inputs of the steps to forecast, a table with their times or the path of
                a file, where the estimator was given `future`; by default those in the rows of
                `data`, or of the table of the training, that have no value to forecast yet. The
                forecast covers as many steps as they are known for.

        Returns:
            A row for each column and step, as statsforecast has them: `unique_id`, the column;
            `ds`, the time; `forecast`; and the bounds `lo-80`, `hi-80`, `lo-95` and
            `hi-95`.

        Raises:
            ConfigError: The model forecasts fewer steps.
            DataError: The data do not fit the run, or are too few.
        """
        from gru_training.forecasting.future import forecast

        run = self._run()
        with in_python():
            recent = recent_rows(run, data, future)
            load_tensorflow()
            from gru_training.forecasting.preprocessor import make_predictor

            if "predictor" not in self._loaded:
                predictor = make_predictor(run.delivered_model(), run.preprocessor())
                self._loaded["predictor"] = predictor
            table = forecast(run, recent, horizon, self._loaded["predictor"])
        for note in recent.notes:
            Console(stderr=True, soft_wrap=True).print(f"note: {note}", markup=False)
        return table

    def cross_validation(
        self,
        data: Any = None,
        *,
        folds: int = 5,
        step: int = 1,
        gap: int = 0,
        refit: bool = False,
        warm_start: bool = False,
        adaptive: bool = False,
    ) -> "pd.DataFrame":
        """Errors at several origins in time, through the test part, beside refitted baselines.

        The model stays as it was trained, unless `refit` is given; it has never seen the test part.
        Ridge regression and exponential smoothing are fitted anew on all rows before each fold.

        Args:
            data: The series of the training, which may have grown since; needed where the
                estimator was loaded and the series was given in memory.
            folds: Parts of the test windows, in the order of time.
            step: Forecast from every n-th time of a fold only.
            gap: Rows before each fold that no model is fitted on.
            refit: Train the run's model again for each fold, on all rows before it.
            warm_start: With `refit`, begin with the networks of the fold before.
            adaptive: Also measure intervals that learn from their misses as time goes on.

        Returns:
            A row for each fold and model: `fold`, `model`, `first_time`, `last_time`,
            `windows`, `mse`, `mae`, `mase`, `rmsse` and `smape`; for the run's model `crps`,
            too, and the shares of values inside its intervals, `inside-80` and `adaptive-80`.

        Raises:
            TrainingError: The data are not those of the run, or a number is out of range.
        """
        from gru_training.forecasting.backtest import backtest, fold_table
        from gru_training.forecasting.config import BacktestConfig

        run = self._run()
        with in_python():
            config = BacktestConfig(
                run.path, folds, step=step, gap=gap, refit=refit, warm_start=warm_start,
                adaptive=adaptive,
            )  # fmt: skip
            like_run = tested_rows(run, data, self._series)
            found = backtest(run, like_run, config, Console(quiet=True))
        return fold_table(found, run.levels, like_run.plain)
