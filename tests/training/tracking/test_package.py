"""Settings of trackers, and trackers that are not installed."""

import importlib.util

import pytest

from gru_training.__main__ import main
from gru_training.config import RunConfig
from gru_training.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"track_to": "http://localhost:5000"}, "--track-to and .* need --track"),
        ({"track": "wandb", "register": "films"}, "--register needs --track mlflow, got wandb"),
        ({"register": "films"}, "--register needs --track mlflow, got no --track"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(ConfigError, match=message):
        RunConfig(**settings)


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_package_is_named_with_its_extra(name, monkeypatch, tmp_path, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked: None if asked == name else found(asked)
    )
    message = (
        f"--track {name} needs {name}, which is not installed; install it with "
        f"pip install 'keras-gru[{name}]'"
    )
    with pytest.raises(ConfigError) as caught:
        RunConfig(track=name).require_tracker()
    assert str(caught.value) == message
    assert main(["sentiment", "--track", name, "--runs-dir", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())
