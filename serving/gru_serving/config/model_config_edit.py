"""Edits of a model config file: the versions and labels of one model at a time."""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from gru_serving.config.files import read_text_proto, served_models
from gru_serving.named_files import naming_file
from gru_serving.protos import pool
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig


class RolloutError(Exception):
    """Labels cannot be moved; the configuration was not changed."""


def read_config(path: Path, model: str) -> ModelServerConfig:
    """Read the configuration in a file, which must name the model.

    Raises:
        ServingError: The file is no model config file.
        RolloutError: The configuration does not name the model.
    """
    config = read_text_proto(str(path), ModelServerConfig())
    served_models(config, may_log=True)  # the server knows whether it has a place for logs
    find_entry(config, model)
    return config


def write_config(path: Path, config: ModelServerConfig) -> None:
    """Replace the file atomically; its owner and permissions are kept, its comments are lost."""
    text = text_format.MessageToString(config, descriptor_pool=pool.POOL)
    with naming_file(path):
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        before = path.stat()
        # Windows has no owners of this kind.
        if hasattr(os, "chown") and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            # Otherwise the server's user might be unable to read a file that root rewrote.
            with contextlib.suppress(PermissionError):  # only root may give files away
                os.chown(scratch, before.st_uid, before.st_gid)
        scratch.chmod(before.st_mode & 0o777)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def find_entry(config: ModelServerConfig, model: str) -> Any:
    """Find the part of a configuration about one model.

    Raises:
        RolloutError: There is none.
    """
    for entry in config.model_config_list.config:
        if entry.name == model:
            return entry
    names = [entry.name for entry in config.model_config_list.config]
    raise RolloutError(f"--model: expected one of {names}; got {model!r}")


def copy_config(config: ModelServerConfig) -> ModelServerConfig:
    """Copy a configuration."""
    copied = ModelServerConfig()
    copied.CopyFrom(config)
    return copied


def with_labels(
    config: ModelServerConfig, model: str, labels: Mapping[str, int | None]
) -> ModelServerConfig:
    """Return the configuration with exactly these labels; None means no label."""
    changed = copy_config(config)
    entry = find_entry(changed, model)
    entry.version_labels.clear()
    for label, version in labels.items():
        if version is not None:
            entry.version_labels[label] = version
    return changed


def retired(config: ModelServerConfig, model: str, below: int) -> ModelServerConfig:
    """Return the configuration without unlabelled versions below a number, if it lists versions."""
    changed = copy_config(config)
    entry = find_entry(changed, model)
    if entry.model_version_policy.WhichOneof("policy_choice") != "specific":
        return changed
    labelled = set(entry.version_labels.values())
    specific = entry.model_version_policy.specific
    kept = [one for one in specific.versions if one >= below or one in labelled]
    del specific.versions[:]
    specific.versions.extend(kept)
    return changed
