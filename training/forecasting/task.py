"""Forecasting as a task; see `training.task`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from training.forecasting.backtest_config import BacktestConfig
from training.forecasting.config import ForecastingConfig
from training.forecasting.presets import PRESETS
from training.task import Command, Task

if TYPE_CHECKING:
    from training.forecasting.run import ForecastingRun
    from training.forecasting.servable import ForecastingServable


def _backtest(config: BacktestConfig, console: Console) -> None:
    from training.forecasting.backtest import run_backtest

    folder = run_backtest(config, console)
    table = (folder / "backtest.md").read_text("utf-8")
    console.print("\n".join(line for line in table.split("\n") if line.startswith("|")),
                  markup=False, highlight=False)  # fmt: skip
    console.print(f"\nreport  {folder / 'backtest.md'}", markup=False, highlight=False)


class ForecastingTask:
    """A series in, its next steps with intervals out."""

    config_type = ForecastingConfig
    presets = PRESETS
    commands = (Command("backtest", BacktestConfig, _backtest),)

    def train(
        self, config: ForecastingConfig, console: Console, resume: bool
    ) -> "ForecastingRun | None":
        """Train a forecaster."""
        from training.forecasting.pipeline import train_forecasting

        return train_forecasting(config, console, resume)

    def print_results(self, metrics: Mapping[str, Any], console: Console) -> None:
        """Print the errors of the model and of the baselines, and the coverage of the intervals."""
        from training.forecasting.report import coverage_remarks, not_better_than_naive

        results = {metrics["model"]["name"]: metrics["model"], **metrics["baselines"]}
        width = max(map(len, [*results, "mean squared error"]))
        console.print(f"\n{'mean squared error':{width}}  validation    test", style="bold")
        for name, result in results.items():
            validation, test = result["validation"]["mse"], result["test"]["mse"]
            console.print(f"{name:{width}}  {validation:>10.4f}  {test:>6.4f}", highlight=False)
        for interval in metrics["intervals"]:
            console.print(
                f"{interval['nominal']:.0%} interval: {interval['coverage']:.1%} of the test "
                "values inside",
                highlight=False,
            )
        for remark in coverage_remarks(metrics):
            console.print(remark, style="yellow", highlight=False)
        warning = not_better_than_naive(metrics)
        if warning:
            console.print(f"\n{warning}", style="bold red", highlight=False)

    def open_run(self, path: Path) -> "ForecastingRun":
        """Open a run directory."""
        from training.forecasting.run import ForecastingRun

        return ForecastingRun.open(path)

    def servable(self, run: "ForecastingRun") -> "ForecastingServable":
        """The forecaster with its signatures."""
        from training.forecasting.servable import ForecastingServable

        return ForecastingServable(run)


TASK: Task = ForecastingTask()
