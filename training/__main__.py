"""The command line of the training package: ``python -m training``, also ``gru-train``.

Exit status: 0 the run is complete; 2 a setting or the data cannot be used, one line says why;
130 interrupted (by Ctrl-C the run is kept if training had begun; by SIGTERM its checkpoint, with
which `resume` goes on).
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from shlex import quote
from tempfile import TemporaryFile
from typing import Annotated, Any

import tyro
from rich.console import Console

from training.backtest_config import BacktestConfig
from training.checkpoint import existing_checkpoint, read_settings
from training.errors import InterruptedRun, TrainingError
from training.forecasting_config import ForecastingConfig
from training.forecasting_presets import PRESETS as FORECASTING_PRESETS
from training.presets import preset_in
from training.resume_config import ResumeConfig
from training.sentiment_config import SentimentConfig
from training.sentiment_presets import PRESETS as SENTIMENT_PRESETS

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    Args:
        argv: the arguments after the program's name; those of the process by default.
    """
    errors = Console(stderr=True, soft_wrap=True)
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        config = _parse(arguments)
        with _sigterm_interrupts():
            return _COMMANDS[type(config)](config)
    except SystemExit as stop:  # tyro's --help and usage errors
        return int(stop.code or 0)
    except TrainingError as error:
        if debug:
            raise
        errors.print(f"gru-train: error: {error}", markup=False, highlight=False)
        return error.exit_code
    except InterruptedRun as stop:
        errors.print(
            "gru-train: interrupted; no run was written. To go on with it: "
            f"gru-train resume {quote(str(stop.run))}",
            markup=False,
            highlight=False,
        )
        return INTERRUPTED
    except KeyboardInterrupt:
        errors.print("gru-train: interrupted; no run was written, and no checkpoint")
        return INTERRUPTED


def _parse(arguments: Sequence[str]) -> Any:
    """The settings that the command line asks for, of the class of its command."""
    sentiment, forecasting = SentimentConfig(), ForecastingConfig()
    if "sentiment" in arguments[:1]:
        sentiment = preset_in(arguments, SENTIMENT_PRESETS, sentiment)
    elif "forecasting" in arguments[:1]:
        forecasting = preset_in(arguments, FORECASTING_PRESETS, forecasting)
    commands: Any = (
        Annotated[SentimentConfig, tyro.conf.subcommand("sentiment", default=sentiment)]
        | Annotated[ForecastingConfig, tyro.conf.subcommand("forecasting", default=forecasting)]
        | Annotated[ResumeConfig, tyro.conf.subcommand("resume")]
        | Annotated[BacktestConfig, tyro.conf.subcommand("backtest")]
    )
    return tyro.cli(
        commands,
        prog="gru-train",
        description="Train a GRU on your data or on built-in data, and look at what it does.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )


def _sentiment(config: SentimentConfig, resume: bool = False) -> int:
    console = Console(soft_wrap=True)
    _load_tensorflow(console, config.run.debug)
    from training.sentiment import train_sentiment

    run = train_sentiment(config, console, resume)

    model, baselines = run.metrics["model"], run.metrics["baselines"]
    answered = {"GRU": model}
    if "gru_alone" in run.metrics:
        answered = {"GRU and n-grams": model, "GRU alone": run.metrics["gru_alone"]}
    results = {
        name: (parts["validation"]["accuracy"], parts["test"]["accuracy"])
        for name, parts in answered.items()
    }
    for name, floor in baselines.items():
        results[name] = (floor["validation_accuracy"], floor["test_accuracy"])
    width = max(map(len, results))
    console.print(f"\n{'accuracy':{width}}  validation    test", style="bold")
    for name, (validation, test) in results.items():
        console.print(f"{name:{width}}  {validation:>10.1%}  {test:>6.1%}", highlight=False)
    return _conclude(console, run, "models/sentiment")


def _forecasting(config: ForecastingConfig, resume: bool = False) -> int:
    console = Console(soft_wrap=True)
    _load_tensorflow(console, config.run.debug)
    from training.forecasting import train_forecasting
    from training.forecasting_report import coverage_remarks, not_better_than_naive

    run = train_forecasting(config, console, resume)
    if run is None:
        console.print("done; the first worker writes the run", highlight=False)
        return 0

    results = {run.metrics["model"]["name"]: run.metrics["model"], **run.metrics["baselines"]}
    width = max(map(len, [*results, "mean squared error"]))
    console.print(f"\n{'mean squared error':{width}}  validation    test", style="bold")
    for name, result in results.items():
        validation, test = result["validation"]["mse"], result["test"]["mse"]
        console.print(f"{name:{width}}  {validation:>10.4f}  {test:>6.4f}", highlight=False)
    for interval in run.metrics["intervals"]:
        console.print(
            f"{interval['nominal']:.0%} interval: {interval['coverage']:.1%} of the test values "
            "inside",
            highlight=False,
        )
    for remark in coverage_remarks(run.metrics):
        console.print(remark, style="yellow", highlight=False)
    warning = not_better_than_naive(run.metrics)
    if warning:
        console.print(f"\n{warning}", style="bold red", highlight=False)
    return _conclude(console, run, "models/forecasting")


def _resume(config: ResumeConfig) -> int:
    path = existing_checkpoint(config.run_path)
    written = read_settings(path)
    with _quiet(not config.debug):
        from training.run_directory import read_config

    types = {"sentiment": SentimentConfig, "forecasting": ForecastingConfig}
    settings = read_config(written, types, path)
    run = replace(settings.run, runs_dir=config.run_path.parent, name=config.run_path.name)
    settings = replace(settings, run=replace(run, debug=config.debug))
    return (_sentiment if isinstance(settings, SentimentConfig) else _forecasting)(settings, True)


def _backtest(config: BacktestConfig) -> int:
    console = Console(soft_wrap=True)
    _load_tensorflow(console, config.debug)
    from training.backtest import run_backtest

    folder = run_backtest(config, console)
    table = (folder / "backtest.md").read_text("utf-8")
    console.print("\n".join(line for line in table.split("\n") if line.startswith("|")),
                  markup=False, highlight=False)  # fmt: skip
    console.print(f"\nreport  {folder / 'backtest.md'}", markup=False, highlight=False)
    return 0


_COMMANDS: dict[type, Callable[[Any], int]] = {
    SentimentConfig: _sentiment,
    ForecastingConfig: _forecasting,
    ResumeConfig: _resume,
    BacktestConfig: _backtest,
}


def _load_tensorflow(console: Console, debug: bool) -> None:
    """Loads it, which takes seconds, and says which one and on what it runs."""
    with console.status("loading TensorFlow ..."), _quiet(not debug):
        import keras
        import tensorflow as tf

        devices = tf.config.list_physical_devices()
    kinds = sorted({device.device_type for device in devices})
    console.print(
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, on {' and '.join(kinds)}",
        highlight=False,
    )


def _conclude(console: Console, run: Any, served: str) -> int:
    """Says what is left and what comes next; returns the exit status."""
    if run.metrics["interrupted"]:
        console.print(
            f"\ninterrupted; epoch {run.metrics['best_epoch']}, the best so far, is kept",
            highlight=False,
        )
    console.print(f"\nrun     {run.path}", markup=False, highlight=False)
    console.print(f"report  {run.path / 'report.md'}", markup=False, highlight=False)
    console.print(
        f"next    python -m serving export {quote(str(run.path))} --to {served}",
        markup=False,
        highlight=False,
    )
    return INTERRUPTED if run.metrics["interrupted"] else 0


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Within, SIGTERM raises KeyboardInterrupt, so that the half-built run is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def _quiet(active: bool) -> Iterator[None]:
    """Holds back what TensorFlow's C++ parts write to stderr while loading; shown on failure."""
    if not active:
        yield
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    kept = os.dup(2)
    with TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except Exception:
            messages.seek(0)
            os.write(kept, messages.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


if __name__ == "__main__":
    sys.exit(main())
