"""`gru-train compare`; imports nothing heavy before its arguments are checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gru_training.config import require_at_least, require_seed, sections, to_dict
from gru_training.errors import ConfigError, DataError, RunDirectoryError
from gru_training.search_ranges import written
from gru_training.task import TASKS, Command, Comparable, find_task

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.compare.comparison import Comparison
    from gru_training.runs.directory import RunDirectory


_MIN_RESAMPLES = 999


@dataclass(frozen=True)
class CompareConfig:
    """Compare runs on the same test rows, with intervals and tests of significance.

    All runs are compared with one, the first unless --reference names another. Without --data the
    test rows are those that the runs held out, which must be the same.

    Texts and other rows that are independent of each other get bootstrap intervals and McNemar's
    test of the accuracies; forecasts get the Diebold-Mariano test and its intervals.
    """

    run_paths: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(metavar="RUN RUN ...", help_behavior_hint=""),
    ]
    """Two or more run directories of one task."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Test file on which no run was trained, with the columns of the runs; of a series only the
    part after the runs' validation rows counts. Default: the test rows that the runs held out.
    """
    reference: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """The run that the others are compared with, a path or a name; default: the first."""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """New folder for report, picture and figures; default: beside the reference, named after it."""
    resamples: int = 9_999
    """Number of times that the bootstrap draws the rows."""
    seed: int = 0
    """Seed of the bootstrap."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""

    def __post_init__(self) -> None:
        if len(self.run_paths) < 2:
            raise ConfigError(
                "compare needs at least two run directories, got "
                + (str(self.run_paths[0]) if self.run_paths else "none")
            )
        require_at_least("--resamples", self.resamples, _MIN_RESAMPLES)
        require_seed(self.seed)


def check_comparison(config: CompareConfig, _: "Console") -> CompareConfig:
    """Raise TrainingError if runs, data or output cannot be used; needs no TensorFlow."""
    from gru_training.runs.directory import RunDirectory

    paths = ordered(config.run_paths, config.reference)
    runs = [RunDirectory.open(path) for path in paths]
    task = comparable_task(runs[0])
    for run in runs[1:]:
        if run.task != runs[0].task:
            raise RunDirectoryError(
                f"{run.path}: expected a {runs[0].task} run as {runs[0].path}, got one of the task "
                f"{run.task!r}"
            )
    first, *others = map(task.open_run, paths)
    for other in others:
        task.require_alike(other, first)
    if config.data is not None and not config.data.is_file():
        raise DataError(f"--data: there is no file {config.data}")
    output = output_folder(config)
    if output.exists():
        raise RunDirectoryError(f"{output} exists already; choose another --output or remove it")
    return config


def run_comparison(config: CompareConfig, console: "Console") -> None:
    """Compare, print the tables, and write the folder of the comparison."""
    from gru_training.compare.report import print_tables, write_comparison

    paths = ordered(config.run_paths, config.reference)
    comparison = compare_runs(paths, config.data, config.resamples, config.seed, console)
    print_tables(comparison, console)
    folder = write_comparison(comparison, output_folder(config))
    console.print(f"\nreport  {folder / 'comparison.md'}")
    console.print(f"page    {folder / 'comparison.html'}")
    console.print(f"picture {folder / 'comparison.png'}")


COMPARE = Command(
    "compare",
    CompareConfig,
    run_comparison,
    check_comparison,
    examples=(
        "gru-train compare runs/tickets runs/tickets-forward",
        "gru-train compare runs/tickets runs/tickets-forward --data june.csv --output in-june",
    ),
)


def compare_runs(
    paths: Sequence[Path],
    data: Path | None = None,
    resamples: int = CompareConfig.resamples,
    seed: int = CompareConfig.seed,
    console: "Console | None" = None,
) -> "Comparison":
    """Compare runs of one task with the first of them.

    Args:
        paths: Paths of two or more run directories, the reference first.
        data: Path of a test file; by default the rows that all the runs held out.
        resamples: Number of draws of the bootstrap.
        seed: Seed of the bootstrap.
        console: Console for progress; none is shown by default.

    Raises:
        TrainingError: The runs cannot be compared; names the run and what differs.
    """
    from gru_training.compare.comparison import compare_outcomes, on_the_same_rows
    from gru_training.runs.directory import RunDirectory

    if console is None:
        from rich.console import Console

        console = Console(quiet=True)
    task = comparable_task(RunDirectory.open(paths[0]))
    names = run_names(paths)
    runs = [task.open_run(path) for path in paths]
    settings = {name: flags(run.config) for name, run in zip(names, runs, strict=True)}
    outcomes = {}
    for name, run in zip(names, runs, strict=True):
        with console.status(f"{'scoring with' if data else 'reading'} {name} ..."):
            outcomes[name] = task.outcomes(run, data, runs[0])
    outcomes = on_the_same_rows(outcomes, held_out=data is None)
    with console.status("comparing ..."):
        source = None if data is None else str(data)
        return compare_outcomes(outcomes, settings, source, resamples, seed)


def comparable_task(run: "RunDirectory") -> Comparable:
    """Find the task of a run.

    Raises:
        RunDirectoryError: Runs of this task cannot be compared.
    """
    task = find_task(run.task)
    if not isinstance(task, Comparable):
        known = [name for name in TASKS if isinstance(find_task(name), Comparable)]
        raise RunDirectoryError(
            f"{run.path}: gru-train compare knows runs of {' and '.join(known)}, got one of the "
            f"task {run.task}; its figures are in its report"
        )
    return task


def ordered(paths: Sequence[Path], reference: Path | None) -> list[Path]:
    """Put the path of the reference first.

    Raises:
        ConfigError: The reference is none of the paths, or a path is given twice.
    """
    places = [path.resolve() for path in paths]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ConfigError(f"expected different runs, got {paths[number]} twice")
    if reference is None:
        return list(paths)
    pairs = list(zip(paths, places, strict=True))
    found = [path for path, place in pairs if place == reference.resolve()]
    found = found or [path for path, place in pairs if place.name == str(reference)]
    if len(found) != 1:
        raise ConfigError(
            f"--reference must be one of {', '.join(map(str, paths))}, got {reference}"
        )
    return [found[0], *(path for path in paths if path != found[0])]


def run_names(paths: Sequence[Path]) -> list[str]:
    """Name each run after its folder, preceded by its parents' names where two would be alike."""
    places = [path.resolve().parts for path in paths]
    depth = 1
    while len({place[-depth:] for place in places}) < len(places):
        depth += 1
    return ["/".join(place[-depth:]) for place in places]


def output_folder(config: CompareConfig) -> Path:
    """Return the folder of the comparison."""
    if config.output is not None:
        return config.output
    first, *others = ordered(config.run_paths, config.reference)
    place = first.resolve()
    rest = others[0].resolve().name if len(others) == 1 else f"{len(others)}-others"
    return place.parent / f"{place.name}-vs-{rest}"


def flags(config: Any) -> dict[str, str]:
    """List the settings of a run by flag, except for its place."""
    values = to_dict(config)
    known = {name: values[of][name] for name, of in sections(config).items() if of != "run"}
    return {
        f"--{name.replace('_', '-')}": _shown(value)
        for name, value in {"preset": values["preset"], **known}.items()
    }


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return written(value) if value is None or isinstance(value, bool) else str(value)
