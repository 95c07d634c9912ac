"""A run of MLflow, with the model as MLflow's own tools load it."""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gru_training.loop.checkpoint import EpochRecord
from gru_training.tracking.tracker import Beginning, FinishedRun, Outcome, epoch_measures

LOADER = "gru_training.estimators.load"
"""Loads a run as a model of MLflow."""
_STATUS = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
_PLACE = "keras_gru.run"
_MOST_LETTERS = 6000
"""Longest value of a parameter, in characters."""
_PATIENCE = {
    # Without this limit, a server that is gone would delay each epoch for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


class MLflowTracker:
    """Writes a run of MLflow, and registers the model.

    Args:
        store: A server or store, as for `mlflow.set_tracking_uri`; by default that of the
            environment.
        experiment: Name of the experiment; made where there is none.
        register: The name under which to register the model; None: it is not registered.
    """

    def __init__(self, store: str | None, experiment: str, register: str | None):
        self._store, self._experiment, self._register = store, experiment, register
        self._client: Any = None
        self._run = ""
        self._told = 0

    def start(self, beginning: Beginning) -> None:
        """Begin a run with the settings and the data, or continue that of a resumed training."""
        with _patient():
            from mlflow import MlflowClient
            from mlflow.entities import Dataset, DatasetInput, Param

            self._client = MlflowClient(self._store)
            experiment = self._client.get_experiment_by_name(self._experiment)
            number = (
                self._client.create_experiment(self._experiment)
                if experiment is None
                else experiment.experiment_id
            )
            if beginning.resumed and self._goes_on(number, beginning.place):
                return
            data = beginning.data
            tags = {
                _PLACE: str(beginning.place),
                "keras_gru.task": beginning.task,
                "keras_gru.version": beginning.version,
                "data.name": data.name,
                "data.sha256": data.sha256,
                **{f"data.{part}.rows": str(size) for part, size in data.sizes.items()},
            }
            run = self._client.create_run(number, tags=tags, run_name=beginning.name)
            self._run = run.info.run_id
            params = [Param(name, _text(value)) for name, value in beginning.settings.items()]
            self._client.log_batch(self._run, params=params)
            source = json.dumps({"uri": str(beginning.settings.get("data.data") or data.name)})
            entry = Dataset(data.name, data.sha256[:36], "local", source)
            self._client.log_inputs(self._run, [DatasetInput(entry)])

    def epoch(self, record: EpochRecord) -> None:
        """Log the measures of an epoch, once."""
        if record.epoch <= self._told:
            return
        self._log(epoch_measures(record), record.epoch)
        self._told = record.epoch

    def results(self, run: FinishedRun) -> None:
        """Log measures, pictures, and the run as a model that MLflow loads."""
        self._log(dict(run.measures), run.best_epoch)
        with _patient(), self._active() as mlflow:
            for picture in run.pictures:
                self._client.log_artifact(self._run, str(picture), "report")
            self._client.log_artifact(self._run, str(run.path / "report.html"), "report")
            with tempfile.TemporaryDirectory() as aside:
                place = Path(aside) / "run"  # one name for all, within a model
                place.symlink_to(run.path.absolute(), target_is_directory=True)
                mlflow.pyfunc.log_model(
                    name="model",
                    loader_module=LOADER,
                    data_path=str(place),
                    pip_requirements=[f"keras-gru[train]=={_version()}"],
                    metadata={"task": run.task},
                    registered_model_name=None if run.interrupted else self._register,
                )

    def finish(self, outcome: Outcome) -> None:
        """End the run with MLflow's corresponding status."""
        if self._run:
            with _patient():
                self._client.set_terminated(self._run, _STATUS[outcome])

    def _goes_on(self, experiment: str, place: Path) -> bool:
        """Tell whether the run of the interrupted training exists, which is then continued."""
        quote = '"' if "'" in str(place) else "'"  # they cannot be escaped
        found = self._client.search_runs(
            [experiment],
            f"tags.`{_PLACE}` = {quote}{place}{quote} and attributes.status != 'FINISHED'",
            max_results=1,
        )
        if not found:
            return False
        self._run = found[0].info.run_id
        self._client.update_run(self._run, status="RUNNING")
        told = self._client.get_metric_history(self._run, "epoch_seconds")
        self._told = max((each.step for each in told), default=0)
        return True

    def _log(self, measures: Mapping[str, float], step: int) -> None:
        with _patient():
            from mlflow.entities import Metric

            now = int(time.time() * 1000)
            self._client.log_batch(
                self._run, [Metric(name, value, now, step) for name, value in measures.items()]
            )

    @contextmanager
    def _active(self) -> Iterator[Any]:
        """Make this run the one to which MLflow's functions write, inside the context."""
        import mlflow

        before = mlflow.get_tracking_uri()
        if self._store is not None:
            mlflow.set_tracking_uri(self._store)
        try:
            with mlflow.start_run(run_id=self._run, nested=True):
                yield mlflow
        finally:
            if self._store is not None:
                mlflow.set_tracking_uri(before)


@contextmanager
def _patient() -> Iterator[None]:
    """Limit MLflow's waiting for a server inside the context, unless the environment does."""
    added = {name: value for name, value in _PATIENCE.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _version() -> str:
    from gru_training.runs.directory import package_version

    return package_version()


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:_MOST_LETTERS]
