"""`gru-train predict`: a file of rows in, a file with their answers out."""

from collections.abc import Callable

from rich.console import Console

from training.predict.config import PredictConfig
from training.predict.run_kind import run_task, scored_columns


def predict_file(
    config: PredictConfig,
    console: Console,
    load_tensorflow: Callable[[Console, bool], None] = lambda *_: None,
) -> None:
    """Score a file; all that can be checked without TensorFlow is checked before it is loaded.

    Args:
        config: The settings.
        console: Where to show progress.
        load_tensorflow: Loads it and says so; told whether to show its messages. By default it
            is loaded in silence.

    Raises:
        TrainingError: Run, data or output cannot be used.
        InterruptedScoring: On Ctrl-C; what is done is kept.
    """
    from training.scoring.file_job import FileJob

    given = {} if config.text_column is None else {"text": config.text_column}
    task = run_task(config.run_path)
    inputs = scored_columns(config.run_path, task, given)
    job = FileJob(
        config.data,
        config.output,
        inputs,
        columns=given,
        keep=None if config.keep is None else [name for name in config.keep.split(",") if name],
        overwrite=config.overwrite,
        console=console,
    )
    load_tensorflow(console, config.debug)
    with console.status(f"loading {config.run_path} ..."):
        scorer = task.scorer(task.open_run(config.run_path))
    console.print(job.run(scorer).summary(), highlight=False)
    console.print(f"output  {config.output}", markup=False, highlight=False)
