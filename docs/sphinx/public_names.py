"""Warnings about public names that the reference leaves out or that have no docstring.

autodoc says nothing of either: what has no docstring is left out.
"""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import keras
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

# What Keras calls in its layers is documented there, but for what people call themselves.
CALLED_BY_PEOPLE = ("call", "get_initial_state", "path", "quantize", "reset_state", "states")
OWN = ("keras_gru", "gru_serving", "gru_training")
_LOG = logging.getLogger(__name__)


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or the names that the module itself defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def silent_methods(cls: type) -> Iterator[str]:
    """The public methods and properties of a class, its own and inherited, without a docstring.

    A method that takes the place of one with a docstring may leave it at that.
    """
    for parent in cls.__mro__:
        for name, value in vars(parent).items() if _is_own(parent) else ():
            method = callable(value) or isinstance(value, (property, classmethod, staticmethod))
            if method and not name.startswith("_") and not inspect.getdoc(getattr(cls, name)):
                yield name


def _is_own(obj: Any) -> bool:
    """Whether an object was written here; so is everything that does not say where."""
    for holder in (getattr(obj, "fget", None), obj, getattr(obj, "__objclass__", None)):
        if module := getattr(holder, "__module__", None):
            return module.partition(".")[0] in OWN
    return True


def _leave_out_foreign(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """What comes from Keras, scikit-learn or Python is documented there."""
    hidden = not _is_own(obj) or _is_for_keras(name, obj)
    return True if what == "class" and hidden else None


def _is_for_keras(name: str, obj: Any) -> bool:
    """Whether a member of a layer or cell takes the place of one that Keras calls."""
    module = getattr(getattr(obj, "fget", obj), "__module__", None) or ""
    theirs = hasattr(keras.layers.GRU, name) or hasattr(keras.layers.GRUCell, name)
    return module.startswith("keras_gru") and theirs and name not in CALLED_BY_PEOPLE


def _complain(app: Sphinx, env: BuildEnvironment) -> None:
    found = env.domains.python_domain.objects
    for module in [name for name, entry in found.items() if entry.objtype == "module"]:
        location = found[module].docname
        imported = importlib.import_module(module)
        for name in public_names(imported):
            if f"{module}.{name}" not in found:
                _warn(f"{module}.{name}: a public name in no page or without docstring", location)
            value = getattr(imported, name)
            for method in silent_methods(value) if inspect.isclass(value) else ():
                _warn(f"{module}.{name}.{method}: a public name without docstring", location)


def _warn(text: str, location: str) -> None:
    _LOG.warning(text, location=location, type="public_names")


def setup(app: Sphinx) -> dict[str, bool]:
    """Choose the members; when all pages are read, look for what is missing."""
    app.connect("autodoc-skip-member", _leave_out_foreign)
    app.connect("env-check-consistency", _complain)
    return {"parallel_read_safe": True}
