"""The history of a config file's labels, stored next to it in `FILE.history.jsonl`."""

import contextlib
import getpass
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gru_serving.codecs.json_predict import read_json
from gru_serving.config.model_config_edit import RolloutError
from gru_serving.named_files import naming_file

_ENDING = ".history.jsonl"


@dataclass(frozen=True)
class Move:
    """A label that moved from one version to another; None where there was or is none."""

    label: str
    before: int | None
    after: int | None


class History:
    """The history of a model config file.

    Args:
        config: The config file.
    """

    def __init__(self, config: Path) -> None:
        self._config = config
        self._path = config.with_name(config.name + _ENDING)

    def before(self, model: str, label: str) -> int:
        """Return the version to which a label pointed before its last promotion.

        Raises:
            RolloutError: The history does not know.
        """
        stack: list[int] = []
        for entry in self._entries():
            if (entry["model"], entry["label"]) != (model, label):
                continue
            if entry["command"] == "rollback":
                back = entry["to"]
                stack = stack[: stack.index(back) + 1] if back in stack else [back]
            elif entry["to"] is not None:
                stack = [*(stack or [entry["from"]]), entry["to"]]
        known = [version for version in stack[:-1] if version is not None]
        if not known:
            raise RolloutError(
                f"label {label!r} of model {model}: {self._path.name} has no earlier version; "
                "give one with --to"
            )
        return known[-1]

    @contextmanager
    def noting(self, model: str, moves: Sequence[Move], command: str) -> Iterator[None]:
        """Record moves that are made inside the context; the record is removed if they fail.

        Moves are recorded first, because a move without a record could not be rolled back.

        Raises:
            OSError: The moves cannot be written.
        """
        with naming_file(self._path):
            size = self._write(model, moves, command)
        try:
            yield
        except BaseException:
            os.truncate(self._path, size)
            raise

    def _write(self, model: str, moves: Sequence[Move], command: str) -> int:
        """Append the moves; returns the size of the file before."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = [
            json.dumps(
                {
                    "time": now,
                    "by": _user(),
                    "command": command,
                    "model": model,
                    "label": move.label,
                    "from": move.before,
                    "to": move.after,
                }
            )
            for move in moves
        ]
        is_new = not self._path.exists()
        torn = not is_new and self._path.read_bytes()[-1:] not in (b"", b"\n")
        with self._path.open("ab", buffering=0) as file:
            size = file.tell()
            if is_new:
                self._share()
            try:
                # An incomplete line left by a full disk must not spoil the next one.
                text = b"\n" * torn + "".join(f"{line}\n" for line in lines).encode()
                while text:
                    text = text[file.write(text) :]
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(size)
                raise
        return size

    def _share(self) -> None:
        """Let the users who may write the config file write its history."""
        config = self._config.stat()
        if hasattr(os, "chown"):  # not on Windows
            with contextlib.suppress(PermissionError):  # only root may give files away
                os.chown(self._path, config.st_uid, config.st_gid)
        self._path.chmod(config.st_mode & 0o777)

    def _entries(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        entries = []
        for number, line in enumerate(self._path.read_text("utf-8").splitlines(), 1):
            try:
                entries += [read_json(line)] if line else []
            except ValueError:
                raise RolloutError(
                    f"{self._path}, line {number}: cannot be read, perhaps because the disk was "
                    "full; remove it, or give the version with --to"
                ) from None
        return entries


def _user() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a user without a name, as in containers
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
