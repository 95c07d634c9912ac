"""The whole line in one command: train, export, serve, ask over REST and gRPC, for both tasks.

`make demo` runs it. Everything it makes lies under demo_output/; everything it starts, it stops.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from demo.co2 import ask_about_co2
from demo.processes import run as run_python
from demo.processes import stop_all, stop_on_signals
from demo.reviews import ask_about_reviews
from demo.server import running_server
from demo.terminal import console, farewell, title

if sys.platform == "win32":
    sys.exit("the demo needs Linux or macOS, as the server does; on Windows, run it in WSL")

OUTPUT = Path("demo_output")
PICTURE = OUTPUT / "forecast.png"


def main() -> int:
    """Run the demonstration; returns the exit status."""
    try:
        stop_on_signals()
        return _demonstrate()
    except subprocess.CalledProcessError as error:
        console().print(
            f"demo: the command above ended with status {error.returncode}", style="red"
        )
        return 1
    except KeyboardInterrupt:
        stop_all()
        farewell()
        return 130
    finally:
        stop_all()


def _demonstrate() -> int:
    began = time.monotonic()
    title("1  Train a GRU on generated reviews in which word order decides, and export it")
    reviews, sentiment = _train_and_export("sentiment")
    title("2  Train a GRU on weekly CO2 at Mauna Loa, and export it: raw ppm in, intervals out")
    series, co2 = _train_and_export("co2", "forecasting", "--preset", "co2")
    title("3  Serve both as tensorflow_model_server would, and ask over both transports")
    with running_server(OUTPUT, sentiment, co2) as (rest, grpc):
        wrong = ask_about_reviews(reviews, rest, grpc)
        wrong += ask_about_co2(series, PICTURE, rest, grpc)
    title("What you have now")
    for run in (reviews, series):
        console().print(f"run      {run}   report.html for a browser, report.md")
    for base_path in (sentiment, co2):
        console().print(f"model    {_newest(base_path)}")
    console().print(f"picture  {PICTURE}")
    console().print(f"server   {OUTPUT / 'server.log'}")
    console().print(f"took     {time.monotonic() - began:.0f} s")
    console().print(f"\nTry the models in the browser:  gru-serve playground {OUTPUT / 'models'}")
    return 1 if wrong else 0


def _train_and_export(name: str, *command: str) -> tuple[Path, Path]:
    """Run a command of gru-train and export the result; gives the run and the model's base path."""
    run = OUTPUT / "runs" / time.strftime(f"{name}-%Y%m%d-%H%M%S")
    models = OUTPUT / "models" / name
    place = ("--runs-dir", str(run.parent), "--name", run.name)
    run_python("-m", "gru_training", *(command or (name,)), *place)
    run_python("-m", "gru_serving", "export", str(run), "--to", str(models))
    return run, models


def _newest(models: Path) -> Path:
    return max(models.glob("[0-9]*"), key=lambda version: int(version.name))


if __name__ == "__main__":
    sys.exit(main())
