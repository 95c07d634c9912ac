"""`gru-train report`: the report of a run, or of a comparison, in the browser."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from gru_training.errors import RunDirectoryError
from gru_training.task import Command

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ReportConfig:
    """Show where the page of a run's report is; write it if an older run has none.

    The page is one file that needs no other, no server and no network. Works for runs and for
    the folders of gru-train compare.

    gru-train report runs/sentiment --open
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run, such as runs/NAME, or the folder of a comparison."""
    open: bool = False
    """Open the page in the browser."""
    rewrite: bool = False
    """Write the page again, as this version shows it."""
    debug: bool = False
    """Show the traceback of an error."""


def run_report(config: ReportConfig, console: "Console") -> None:
    """Print where the page is, and open it.

    Raises:
        RunDirectoryError: The folder holds no report, or the page cannot be written.
    """
    from gru_training.runs.report_page import PAGES, write_report_page

    folder = config.run_path
    if not folder.is_dir():
        raise RunDirectoryError(f"there is no run directory {folder}")
    page = next((folder / name for name in PAGES.values() if (folder / name).is_file()), None)
    if page is None or config.rewrite:
        page = write_report_page(folder)
    if page is None:
        raise RunDirectoryError(f"{folder}: expected {' or '.join(PAGES)}, got a folder without")
    console.print(f"page    {page}", markup=False, highlight=False)
    if config.open and not webbrowser.open(page.resolve().as_uri()):
        console.print("no browser could be opened; open the page yourself", highlight=False)


REPORT = Command("report", ReportConfig, run_report, needs_tensorflow=False)
