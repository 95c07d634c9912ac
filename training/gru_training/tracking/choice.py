"""Which tracker the settings ask for."""

from pathlib import Path

from gru_training.config import RunConfig
from gru_training.tracking.mlflow_tracker import MLflowTracker
from gru_training.tracking.tensorboard_tracker import TensorBoardTracker
from gru_training.tracking.tracker import Tracker
from gru_training.tracking.wandb_tracker import WandbTracker

PROJECT = "keras-gru"


def make_tracker(config: RunConfig, name: str) -> Tracker | None:
    """The tracker of these settings; None where they ask for none.

    Args:
        config: Where the result goes.
        name: Of the run.
    """
    if config.track is None:
        return None
    project = config.track_project or PROJECT
    if config.track == "tensorboard":
        folder = config.runs_dir / "tensorboard" if config.track_to is None else config.track_to
        return TensorBoardTracker(Path(folder) / name)
    if config.track == "mlflow":
        return MLflowTracker(config.track_to, project, config.register)
    return WandbTracker(Path(config.track_to or config.runs_dir), project)
