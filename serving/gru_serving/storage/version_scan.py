"""The versions of a model on disk, and the choice of those to serve."""

import logging
import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from gru_serving.config.files import ServedModel, VersionPolicy
from gru_serving.errors import NotFound

log = logging.getLogger(__name__)

_INT64 = (-(1 << 63), (1 << 63) - 1)


def scan(model: ServedModel, refused: Collection[int] = ()) -> dict[int, Path]:
    """Scan for the versions that a model's policy asks for.

    Args:
        model: Configuration of the model.
        refused: Versions that do not count among the latest, unless there are no others.

    Returns:
        Directories by version number; empty while there are none.

    Raises:
        NotFound: The base path does not exist or is no directory.
    """
    found = versions_on_disk(model.base_path)
    chosen = choose(found, model.policy, refused)
    if not found:
        log.warning(
            "No versions of servable %s found under base path %s. Did you forget to name your "
            "leaf directory as a number (eg. '/1/')?",
            model.name,
            model.base_path,
        )
    for version in model.policy.versions:
        if version not in found:
            log.warning(
                "Version %d of servable %s is not under %s", version, model.name, model.base_path
            )
    return chosen


def versions_on_disk(base_path: Path) -> dict[int, Path]:
    """List the children of the base path whose name is a number.

    Raises:
        NotFound: The base path does not exist or is no directory.
    """
    try:
        names = sorted(child.name for child in base_path.iterdir())
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotFound(f"Could not find base path {base_path}: {reason}") from None
    found: dict[int, Path] = {}
    for name in names:
        if re.fullmatch(r"-?[0-9]+", name) is None:
            continue
        version = int(name)
        if not _INT64[0] <= version <= _INT64[1]:
            continue
        if version in found:
            _warn_of_two(found[version], base_path / name, version)
        found[version] = base_path / name
    return found


@lru_cache(maxsize=1024)  # so that every scan does not say it again
def _warn_of_two(one: Path, other: Path, version: int) -> None:
    log.warning("%s and %s both stand for version %d; using the latter", one, other, version)


def is_version(path: Path) -> bool:
    """Tell whether a directory is itself a version rather than a base path with versions."""
    try:
        return (path / "saved_model.pb").is_file()
    except PermissionError:  # before Python 3.14
        return False


def choose(
    found: dict[int, Path], policy: VersionPolicy, refused: Collection[int] = ()
) -> dict[int, Path]:
    """Choose the part of `found` that the policy asks for; `refused` as in `scan`."""
    if policy.kind == "all":
        return dict(found)
    if policy.kind == "specific":
        return {version: found[version] for version in policy.versions if version in found}
    counting = [version for version in found if version not in refused] or list(found)
    highest = sorted(counting, reverse=True)[: policy.num_versions or 1]
    return {version: found[version] for version in highest}
