"""Training pipelines built on keras_gru.

From Python: `TextClassifier`, `TextRegressor`, `Forecaster` and `load_run`, each imported when it
is first used. From the command line: `gru-train`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gru_training.estimators.forecaster import Forecaster
    from gru_training.estimators.load import load_run
    from gru_training.estimators.text import TextClassifier, TextRegressor

__all__ = ["Forecaster", "TextClassifier", "TextRegressor", "load_run"]

_MODULES = {
    "Forecaster": "gru_training.estimators.forecaster",
    "TextClassifier": "gru_training.estimators.text",
    "TextRegressor": "gru_training.estimators.text",
    "load_run": "gru_training.estimators.load",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "keras_gru", "gru_training"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {missing}, which is not installed; install it with "
            "pip install 'keras-gru[train]'",
            name=error.name,
        ) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
