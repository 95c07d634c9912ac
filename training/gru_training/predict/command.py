"""`gru-train predict`: a file of rows in, a file with their answers out."""

from typing import TYPE_CHECKING, NamedTuple

from gru_training.predict.config import PredictConfig
from gru_training.predict.run_kind import run_task, scored_columns
from gru_training.quiet import load_tensorflow
from gru_training.task import Command, Task

if TYPE_CHECKING:
    from rich.console import Console

    from gru_training.scoring.file_job import FileJob


class PredictJob(NamedTuple):
    """A file to score, checked as far as that is possible without the model."""

    config: PredictConfig
    task: Task
    job: "FileJob"


def check_prediction(config: PredictConfig, console: "Console") -> PredictJob:
    """Find the task of the run and look through the file; needs no TensorFlow.

    Raises:
        TrainingError: Run, data or output cannot be used.
    """
    from gru_training.scoring.file_job import FileJob

    given = {} if config.text_column is None else {"text": config.text_column}
    task = run_task(config.run_path)
    job = FileJob(
        config.data,
        config.output,
        scored_columns(config.run_path, task, given),
        columns=given,
        keep=None if config.keep is None else [name for name in config.keep.split(",") if name],
        overwrite=config.overwrite,
        console=console,
        given=config.text_format,
    )
    return PredictJob(config, task, job)


def run_prediction(prepared: PredictJob, console: "Console") -> None:
    """Score the file.

    Raises:
        TrainingError: The run cannot be loaded, or the output cannot be written.
        InterruptedWork: On Ctrl-C; what is done is kept.
    """
    config, task, job = prepared
    with console.status(f"loading {config.run_path} ..."):
        run = task.open_run(config.run_path)
        scorer = task.graph_scorer(run)
    if scorer is None:
        load_tensorflow(console, config.debug)
        with console.status(f"loading {config.run_path} ..."):
            scorer = task.scorer(run)
    console.print(job.run(scorer).summary(), highlight=False)
    console.print(f"output  {config.output}", markup=False, highlight=False)


PREDICT = Command(
    "predict", PredictConfig, run_prediction, check_prediction, needs_tensorflow=False
)


def predict_file(config: PredictConfig, console: "Console") -> None:
    """Score a file, as `gru-train predict` does.

    Args:
        config: The settings.
        console: Where to show progress.

    Raises:
        TrainingError: Run, data or output cannot be used.
        InterruptedWork: On Ctrl-C; what is done is kept.
    """
    run_prediction(check_prediction(config, console), console)
