"""A run of Weights & Biases."""

from pathlib import Path
from typing import Any

from gru_training.loop.checkpoint import EpochRecord
from gru_training.tracking.tracker import Beginning, FinishedRun, Outcome, epoch_measures

_EXIT_CODES = {"finished": 0, "interrupted": 130, "failed": 1}
_TYPE = "run-directory"


class WandbTracker:
    """Writes a run of Weights & Biases; `WANDB_MODE=offline` keeps it on disk for `wandb sync`.

    Args:
        folder: Folder of its files, which lie in `wandb/`.
        project: Project of the run.
    """

    def __init__(self, folder: Path, project: str):
        self._folder, self._project = folder, project
        self._run: Any = None

    def start(self, beginning: Beginning) -> None:
        """Begin a run with the settings and facts about the data."""
        import wandb

        self._folder.mkdir(parents=True, exist_ok=True)
        data = beginning.data
        self._run = wandb.init(
            project=self._project,
            name=beginning.name,
            dir=str(self._folder),
            job_type=beginning.task,
            config={
                "task": beginning.task,
                "keras_gru": beginning.version,
                "data": {"name": data.name, "sha256": data.sha256, "rows": dict(data.sizes)},
                "settings": dict(beginning.settings),
            },
            # The output of the training is on the user's terminal already.
            settings=wandb.Settings(console="off", silent=True),
        )
        self._run.define_metric("*", step_metric="epoch")

    def epoch(self, record: EpochRecord) -> None:
        """Log the measures of an epoch."""
        self._run.log({"epoch": record.epoch, **epoch_measures(record)})

    def results(self, run: FinishedRun) -> None:
        """Log measures, pictures and the run directory."""
        import wandb

        self._run.summary.update({**run.measures, "best_epoch": run.best_epoch})
        self._run.log(
            {f"report/{picture.stem}": wandb.Image(str(picture)) for picture in run.pictures}
        )
        artifact = wandb.Artifact(run.path.name, type=_TYPE, metadata={"task": run.task})
        for path in sorted(run.path.iterdir()):
            artifact.add_file(str(path))
        self._run.log_artifact(artifact)

    def finish(self, outcome: Outcome) -> None:
        """End the run."""
        if self._run is not None:
            self._run.finish(exit_code=_EXIT_CODES[outcome])
