"""Forecasting as a task; see `gru_training.task`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gru_training.forecasting.config import (
    ROUNDING_ERRORS,
    BacktestConfig,
    ForecastConfig,
    ForecastingConfig,
)
from gru_training.forecasting.presets import PRESETS
from gru_training.task import Command, Comparable, Searchable, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.criterion import Criterion, Judged
    from gru_training.data.check import DataCheck
    from gru_training.data.series import Series
    from gru_training.forecasting.export.servable import ForecastingServable
    from gru_training.forecasting.future import ForecastJob
    from gru_training.forecasting.run import ForecastingRun
    from gru_training.outcomes import Outcomes


def _check_forecast(config: ForecastConfig, console: "Console") -> "ForecastJob":
    from gru_training.forecasting.future import check_forecast

    return check_forecast(config, console)


def _forecast(job: "ForecastJob", console: "Console") -> None:
    from gru_training.forecasting.future import run_forecast

    run_forecast(job, console)


def _backtest(config: BacktestConfig, console: "Console") -> None:
    from gru_training.forecasting.backtest import run_backtest

    folder = run_backtest(config, console)
    table = (folder / "backtest.md").read_text("utf-8")
    console.print("\n".join(line for line in table.split("\n") if line.startswith("|")))
    console.print(f"\nreport  {folder / 'backtest.md'}")


_ERRORS = {"mse": "squared", "mae": "absolute"}


class ForecastingTask(Searchable, Comparable):
    """The forecasting of a series with intervals."""

    settings = ForecastingConfig
    data_kind = "series"
    presets = PRESETS
    examples = (
        "gru-train forecasting --preset co2",
        "gru-train forecasting --data load.csv --target load --horizon 24",
        "gru-train forecasting --data sales.csv --future promo price --horizon 7",
    )
    flags = (
        "data", "time_column", "time_format", "separator", "encoding", "id_column",
        "value_column", "target", "future", "past", "static", "timezone", "frequency",
        "duplicates", "resample", "drop_bad", "sort_rows", "calendar", "holidays",
        "lookback", "horizon", "transform", "validation_fraction", "test_fraction",
        "architecture", "units", "layers", "dropout", "normalisation", "linear_skip",
        "loss", "combine", "deliver", "refit", "epochs", "learning_rate", "seed",
        "warm_start", "runs_dir", "name", "debug", "track",
    )  # fmt: skip
    commands = (
        Command(
            "forecast",
            ForecastConfig,
            _forecast,
            _check_forecast,
            needs_tensorflow=False,
            examples=(
                "gru-train forecast runs/load",
                "gru-train forecast runs/load --data load-until-today.csv --output tomorrow.csv",
            ),
        ),
        Command(
            "backtest",
            BacktestConfig,
            _backtest,
            examples=(
                "gru-train backtest runs/load",
                "gru-train backtest runs/load --folds 3 --refit --name load-refitted",
            ),
        ),
    )

    def read(self, config: ForecastingConfig) -> "DataCheck":
        """Read the series, and check times, gaps and columns."""
        from gru_training.forecasting.check import check_forecasting

        return check_forecasting(config)

    def train(
        self,
        config: ForecastingConfig,
        console: "Console",
        resume: bool,
        data: "Series | None" = None,
    ) -> "ForecastingRun | None":
        """Train a forecaster."""
        from gru_training.forecasting.pipeline import train_forecasting

        return train_forecasting(config, console, resume, data)

    def criterion(self, config: ForecastingConfig, data: "Series") -> "Criterion":
        """Choose the squared or absolute error of standardised values, by the loss."""
        from gru_training.criterion import FEWEST_PARTS, Criterion, caution
        from gru_training.forecasting.sets import borders_of, steps_of

        measure = config.model.measure
        begin, end = borders_of(data, config.data).part("validation")
        apart = (end - begin) // steps_of(data, config.data)[1]
        enough = data.panel or apart >= FEWEST_PARTS
        few = "" if enough else caution(f"only {apart} validation windows do not overlap")
        return Criterion(f"mean {_ERRORS[measure]} error", False, ".4f", measure, few)

    def try_settings(
        self,
        config: ForecastingConfig,
        data: "Series",
        criterion: "Criterion",
        after_epoch: Callable[[int, float], None],
    ) -> "Judged":
        """Train a forecaster and measure it on the validation windows."""
        from gru_training.forecasting.pipeline import try_settings

        return try_settings(config, data, criterion.measure, after_epoch)

    def show_results(self, run: "ForecastingRun", console: "Console") -> Verdict | None:
        """Print the errors of the model and of the baselines, and the coverage of the intervals."""
        from gru_training.forecasting.report import coverage_remarks, not_better_than_naive

        metrics = run.metrics
        results = {metrics["model"]["name"]: metrics["model"], **metrics["baselines"]}
        measure = metrics["measure"]
        heading = f"mean {_ERRORS[measure]} error"
        width = max(map(len, [*results, heading]))
        console.print(f"\n{heading:{width}}  validation    test", style="bold")
        for name, result in results.items():
            validation, test = result["validation"][measure], result["test"][measure]
            console.print(f"{name:{width}}  {validation:>10.4f}  {test:>6.4f}")
        for interval in metrics["intervals"]:
            console.print(
                f"{interval['nominal']:.0%} interval: {interval['coverage']:.1%} of the test "
                "values inside"
            )
        for remark in coverage_remarks(metrics):
            console.print(remark, style="yellow")
        warning = not_better_than_naive(metrics)
        if warning:
            console.print(f"\n{warning}", style="bold red")
        return verdict(run)

    def open_run(self, path: Path) -> "ForecastingRun":
        """Open a run directory."""
        from gru_training.forecasting.run import ForecastingRun

        return ForecastingRun.open(path)

    def servable(self, run: "ForecastingRun") -> "ForecastingServable":
        """Load the forecaster with its signatures."""
        from gru_training.forecasting.export.servable import ForecastingServable

        return ForecastingServable(run)

    def require_alike(self, run: "ForecastingRun", like: "ForecastingRun") -> None:
        """Raise RunDirectoryError if two runs do not forecast the same."""
        from gru_training.forecasting.run import require_alike

        require_alike(run, like)

    def outcomes(
        self, run: "ForecastingRun", data: Path | None, like: "ForecastingRun"
    ) -> "Outcomes":
        """Return the errors of whole windows."""
        from gru_training.forecasting.outcomes import file_outcomes, held_out_outcomes

        return held_out_outcomes(run, like) if data is None else file_outcomes(run, data, like)


def verdict(run: "ForecastingRun") -> Verdict | None:
    """Write a warning if a baseline has a lower error on the validation part."""
    from gru_training.forecasting.report import error_text

    measure = run.config.model.measure
    own = run.metrics["model"]["validation"][measure]
    floors = run.metrics["baselines"]
    name = min(floors, key=lambda name: float(floors[name]["validation"][measure]))
    best = floors[name]["validation"][measure]
    if own <= max(best, ROUNDING_ERRORS[measure]):
        return None
    problem = (
        f"{name} does better on the validation part: a mean {_ERRORS[measure]} error of "
        f"{error_text(best)} against {error_text(own)}"
    )
    best_already = run.metrics.get("combination") or run.config.model.linear_skip
    return Verdict(problem, () if best_already else ("--linear-skip",))


TASK = ForecastingTask()
