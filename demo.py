"""The whole line in one command: train, export, serve, ask over REST and gRPC, for both tasks.

`make demo` runs it. Everything it makes lies under demo_output/; everything it starts, it stops.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

if sys.platform == "win32":
    sys.exit("demo.py needs Linux or macOS, as the server does; on Windows, run it in WSL")

OUTPUT = Path("demo_output")
PICTURE = OUTPUT / "forecast.png"
PAIRS = 4
START_TIMEOUT = 60.0  # seconds
STOP_TIMEOUT = 10.0  # seconds
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run the demonstration; returns the exit status."""
    try:
        for number in STOP_SIGNALS:
            under_nohup = signal.getsignal(number) is signal.SIG_IGN
            if number != signal.SIGHUP or not under_nohup:
                signal.signal(number, _interruption)
        return _demonstrate()
    except subprocess.CalledProcessError as error:
        _console().print(
            f"demo: the command above ended with status {error.returncode}", style="red"
        )
        return 1
    except KeyboardInterrupt:
        _stop_all()
        _farewell()
        return 130
    finally:
        _stop_all()


def _demonstrate() -> int:
    began = time.monotonic()
    console = _console()
    _title("1  Train a GRU on generated reviews in which word order decides, and export it")
    reviews, sentiment = _train_and_export("sentiment")
    _title("2  Train a GRU on weekly CO2 at Mauna Loa, and export it: raw ppm in, intervals out")
    series, co2 = _train_and_export("co2", "forecasting", "--preset", "co2")
    _title("3  Serve both as tensorflow_model_server would, and ask over both transports")
    with _server(sentiment, co2) as (rest, grpc):
        wrong = _ask_about_reviews(reviews, rest, grpc)
        wrong += _ask_about_co2(series, rest, grpc)
    _title("What is left")
    for run in (reviews, series):
        console.print(f"run      {run}   report.html for a browser, report.md")
    for base_path in (sentiment, co2):
        console.print(f"model    {_newest(base_path)}")
    console.print(f"picture  {PICTURE}")
    console.print(f"server   {OUTPUT / 'server.log'}")
    console.print(f"took     {time.monotonic() - began:.0f} s")
    console.print(f"\nTry the models in the browser:  gru-serve playground {OUTPUT / 'models'}")
    return 1 if wrong else 0


def _train_and_export(name: str, *command: str) -> tuple[Path, Path]:
    """The run and the base path of the served model that come of a command of gru-train."""
    run = OUTPUT / "runs" / time.strftime(f"{name}-%Y%m%d-%H%M%S")
    models = OUTPUT / "models" / name
    place = ("--runs-dir", str(run.parent), "--name", run.name)
    _run("-m", "training", *(command or (name,)), *place)
    _run("-m", "serving", "export", str(run), "--to", str(models))
    return run, models


@functools.cache
def _console() -> Console:
    from rich.console import Console  # here, where an interruption is already answered

    return Console(soft_wrap=True, highlight=False)


def _title(text: str) -> None:
    _console().print(f"\n[bold]{text}[/bold]")


def _farewell() -> None:
    show_cursor = "\x1b[?25h" if sys.stdout.isatty() else ""  # a killed progress bar hides it
    with contextlib.suppress(OSError):  # the terminal may be gone
        sys.stdout.write(
            f"{show_cursor}\ndemo: interrupted; everything it started has been stopped\n"
        )
        sys.stdout.flush()


class _Interruption:
    """The handler of the signals that end the demo: the first one interrupts, later ones wait.

    While a child is being started the interruption is held back: it would lose the child.
    """

    def __init__(self) -> None:
        self._held = self._came = False

    def __call__(self, *_: object) -> None:
        if self._came:
            return
        self._came = True
        if not self._held:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._came:
            raise KeyboardInterrupt


_interruption = _Interruption()
_children: list[subprocess.Popen[bytes]] = []


@contextlib.contextmanager
def _child(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process in a session of its own, which does not outlive the context.

    Ctrl-C reaches only this process, which then ends the child and all that the child started.
    """
    with _interruption.held_back():
        child = subprocess.Popen([sys.executable, *arguments], start_new_session=True, **options)
        _children.append(child)
    try:
        yield child
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End a child and its whole process group, kindly at first."""
    for number, patience in ((signal.SIGTERM, STOP_TIMEOUT), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
    _children.remove(child)


def _stop_all() -> None:
    while _children:
        _stop(_children[-1])


def _run(*arguments: str) -> None:
    with _child(*arguments) as child:
        if status := child.wait():
            raise subprocess.CalledProcessError(status, arguments)


@contextlib.contextmanager
def _server(*base_paths: Path) -> Iterator[tuple[str, str]]:
    """The embedded server on two free ports; gives its REST and gRPC addresses."""
    rest_port, grpc_port = _free_ports(2)
    config = OUTPUT / "models.config"
    models = [
        f'config {{ name: "{path.name}" base_path: "{path.resolve()}" '
        'model_platform: "tensorflow" }'
        for path in base_paths
    ]
    config.write_text("model_config_list {\n  " + "\n  ".join(models) + "\n}\n", "utf-8")
    flags = (
        f"--port={grpc_port}",
        f"--rest_api_port={rest_port}",
        f"--model_config_file={config}",
    )
    console = _console()
    console.print(f"[dim]gru-serve serve {' '.join(flags)}[/dim]")
    with (
        (OUTPUT / "server.log").open("wb") as log,
        _child("-m", "serving", "serve", *flags, stdout=log, stderr=subprocess.STDOUT) as child,
    ):
        deadline = time.monotonic() + START_TIMEOUT
        while not _listens(rest_port) or not _listens(grpc_port):
            if child.poll() is not None or time.monotonic() > deadline:
                console.print((OUTPUT / "server.log").read_text("utf-8", errors="replace"))
                raise subprocess.CalledProcessError(child.returncode or 1, "serve")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{rest_port}", f"grpc://127.0.0.1:{grpc_port}"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _ask(rest: str, grpc: str, model: str, inputs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The answers of a model by transport."""
    from serving.client import connect

    answers = {}
    for transport, url in (("REST", rest), ("gRPC", grpc)):
        with connect(url) as client:
            answers[transport] = client.predict(inputs, model=model)
    return answers


def _ask_about_reviews(run: Path, rest: str, grpc: str) -> int:
    """Ask about pairs of held-out reviews made of the same words; returns the wrong answers."""
    from rich.table import Table

    pairs = _same_words_pairs(run)[:PAIRS]
    rows = [row for pair in pairs for row in pair]
    answers = _ask(rest, grpc, "sentiment", {"text": [row["text"] for row in rows]})
    table = Table(title="Held-out reviews: the two of each pair have the same words")
    table.add_column("review", ratio=1)
    table.add_column("label")
    for transport in answers:
        table.add_column(f"{transport} answer", no_wrap=True)
    wrong = 0
    for i, row in enumerate(rows):
        cells = []
        for answer in answers.values():
            label = answer["label"][i].decode()
            colour = "green" if label == row["label"] else "red"
            wrong += label != row["label"]
            cells.append(f"[{colour}]{label} {answer['probability'][i]:.3f}[/{colour}]")
        table.add_row(row["text"], row["label"], *cells, end_section=i % 2 == 1)
    _console().print(table)
    return wrong


def _ask_about_co2(run: Path, rest: str, grpc: str) -> int:
    """Ask for a held-out half year, and draw it; returns how many answers are no better than none.

    Three years of raw measurements go in. What came is in a later test window's history.
    """
    import numpy as np
    from rich.table import Table

    with np.load(run / "test_windows.npz") as windows:
        histories, origins = windows["histories"], windows["origins"]
        steps = windows["forecasts"].shape[1]
    asked = max(i for i, origin in enumerate(origins) if origin + steps <= origins[-1])
    gap = origins[-1] - origins[asked]
    came = histories[-1, len(histories[-1]) - gap :][:steps, 0]
    answers = _ask(rest, grpc, "co2", {"history": histories[asked : asked + 1]})
    forecast = answers["gRPC"]["forecast"][0, :, 0]
    bounds = answers["gRPC"]["quantiles"][0, :, 0]
    first = json.loads((run / "series.json").read_text("utf-8"))["first_time"]
    weeks = np.datetime64(first, "D") + 7 * np.arange(
        origins[asked] - histories.shape[1], origins[asked] + steps
    )
    table = Table(title="CO2 at Mauna Loa in ppm, a half year that the model never saw")
    for name in ("week", "REST", "gRPC", "80 % interval", "95 % interval", "came"):
        table.add_column(name)
    for step in range(0, steps, 5):
        low, lower, _, upper, high = bounds[step]
        values = [f"{answer['forecast'][0, step, 0]:.1f}" for answer in answers.values()]
        intervals = [f"{lower:.1f}-{upper:.1f}", f"{low:.1f}-{high:.1f}"]
        table.add_row(str(weeks[step - steps]), *values, *intervals, f"{came[step]:.1f}")
    _console().print(table)
    _draw(weeks, histories[asked, :, 0], came, forecast, bounds)
    unchanged = np.abs(histories[asked, -1, 0] - came).mean()
    errors = [np.abs(answer["forecast"][0, :, 0] - came).mean() for answer in answers.values()]
    return sum(error >= unchanged for error in errors)


def _draw(weeks: Any, history: Any, came: Any, forecast: Any, bounds: Any) -> None:
    """The picture of the forecast with its intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    past, future = weeks[: len(history)], weeks[len(history) :]
    for low, name, shade in ((0, "95 % interval", 0.16), (1, "80 % interval", 0.30)):
        axes.fill_between(
            future, bounds[:, low], bounds[:, -1 - low], alpha=shade, color="#0b63b5", lw=0,
            label=name,
        )  # fmt: skip
    axes.plot(past, history, color="#333333", lw=1, label="history that was sent")
    axes.plot(future, came, ".", color="#333333", ms=4, label="what came")
    axes.plot(future, forecast, color="#0b63b5", lw=1.5, label="forecast")
    axes.set_ylabel("CO2 (ppm)")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small", loc="upper left")
    figure.savefig(PICTURE)


def _same_words_pairs(run: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of test rows that have the same words in another order, and opposite labels."""
    pairs, seen = [], {}
    with (run / "test_predictions.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            words = "".join(c if c.isalnum() or c == "'" else " " for c in row["text"].lower())
            key = tuple(sorted(words.split()))
            other = seen.setdefault(key, row)
            if other["label"] != row["label"]:
                pairs.append((other, row))
                del seen[key]
    return sorted(pairs, key=lambda pair: len(pair[0]["text"]))


def _newest(models: Path) -> Path:
    return max(models.glob("[0-9]*"), key=lambda version: int(version.name))


if __name__ == "__main__":
    sys.exit(main())
