"""Moves of version labels on a running server, through its model config file.

TF Serving refuses a label on a version that does not serve, and then loads nothing else of the new
configuration. So a label moves in two steps: first the configuration requests the new version and
the server loads it, then the label points to it. Between the two, and wherever this is interrupted,
the label serves as before.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gru_serving.client import Client, VersionState
from gru_serving.config.files import ServedModel, served_models
from gru_serving.config.model_config_edit import (
    RolloutError,
    copy_config,
    find_entry,
    read_config,
    retired,
    with_labels,
    write_config,
)
from gru_serving.errors import InvalidArgument, NotFound, ServingError, Unimplemented
from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from gru_serving.release.rollout_history import History, Move
from gru_serving.storage.file_lock import LockedError, file_lock
from gru_serving.storage.version_scan import choose, versions_on_disk

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Rollout:
    """The model, its configuration and the server of a rollout.

    Attributes:
        path: Path of the model config file that the server was started with.
        model: Name of the model.
        server: A client of the server; None to write the file only, for a server not running.
        wait: Seconds that the server may take to load, and to take over the file.
        say: Function that is called with a sentence about each step.
        check: Function that is called when the versions are loaded, before a label moves; an error
            that it raises keeps everything as it was.
    """

    path: Path
    model: str
    server: Client | None
    wait: float = 300.0
    say: Callable[[str], None] = logging.getLogger(__name__).info
    check: Callable[[Sequence[Move]], None] = lambda _: None

    def labels(self) -> dict[str, int]:
        """Return the versions by label, as in the file."""
        return dict(find_entry(read_config(self.path, self.model), self.model).version_labels)

    def newest(self) -> int:
        """Return the highest version in the model's base path.

        Raises:
            RolloutError: There is none.
        """
        found = self.versions()
        if not found:
            raise RolloutError(f"model {self.model}: there is no version in its base path")
        return max(found)

    def versions(self) -> dict[int, Path]:
        """Return the directories of the versions on this machine's disk by number."""
        return self._on_disk(read_config(self.path, self.model))

    def unlabelled(self) -> int | None:
        """Return the version for requests without label or version, according to the file.

        None if there is none.
        """
        config = read_config(self.path, self.model)
        return max(choose(self._on_disk(config), self._served(config).policy), default=None)

    def directory(self, version: int) -> Path:
        """Find the directory of a version of the model.

        Raises:
            RolloutError: The version is not on this machine's disk.
        """
        found = self.versions()
        if version not in found:
            raise RolloutError(f"model {self.model}: there is no version {version} on this disk")
        return found[version]

    def before(self, label: str) -> int:
        """Return the version to which a label pointed before its last promotion.

        Raises:
            RolloutError: The history does not know.
        """
        return History(self.path).before(self.model, label)

    def move(self, labels: Mapping[str, int | None], command: str, retire: bool) -> list[Move]:
        """Point labels to versions, or remove them (None).

        Args:
            labels: Versions by label.
            command: Command for the history: label, promote or rollback.
            retire: Whether to stop serving unlabelled versions below the one that a label leaves.

        Raises:
            RolloutError: The labels cannot be moved; what was changed is put back.
        """
        read_config(self.path, self.model)  # says what is wrong before a lock file is written
        try:
            with file_lock(self.path.with_name(f".{self.path.name}.lock")):
                return self._move(labels, command, retire)
        except LockedError as error:
            raise RolloutError(
                f"{self.path}: another process is changing it ({error.holder}); try again"
            ) from None

    def _move(self, labels: Mapping[str, int | None], command: str, retire: bool) -> list[Move]:
        original = read_config(self.path, self.model)
        old = dict(find_entry(original, self.model).version_labels)
        new = {**old, **labels}
        moves = [Move(label, old.get(label), to) for label, to in labels.items()]
        if all(move.before == move.after for move in moves):
            if self.server is not None:  # it may have refused the file
                self._apply(original, lambda: self._labelled(moves), "labelling")
            return []
        moves = [move for move in moves if move.before != move.after]
        wanted = {version for version in new.values() if version is not None}
        self._check_on_disk(original, wanted)
        loading = self._serving(original, wanted | set(old.values()))
        final = with_labels(loading, self.model, new)
        if retire:
            left = [move.before for move in moves if move.before is not None]
            final = retired(final, self.model, min(left, default=0))
        with History(self.path).noting(self.model, moves, command):
            self._carry_out(original, loading, final, wanted, moves)
        return moves

    def _carry_out(
        self,
        original: ModelServerConfig,
        loading: ModelServerConfig,
        final: ModelServerConfig,
        wanted: set[int],
        moves: Sequence[Move],
    ) -> None:
        if self.server is None:
            write_config(self.path, final)
            self.say(
                "written for the next start, which needs "
                "--allow_version_labels_for_unavailable_models"
            )
        else:
            try:
                # A label that the server refuses may be in the file, to be corrected by this move.
                if not wanted <= self._serving_now():
                    self._apply(loading, lambda: self._available(wanted), "loading")
                self.check(moves)
                self._apply(final, lambda: self._labelled(moves), "labelling")
            except BaseException:
                self._put_back(original)
                raise

    def _apply(self, config: ModelServerConfig, done: Callable[[], bool], what: str) -> None:
        """Write the file, have the server apply it, and wait until that shows."""
        assert self.server is not None
        if config != read_config(self.path, self.model):
            write_config(self.path, config)
        try:
            self.server.reload(config, timeout=self.wait)
        except Unimplemented:
            self.say(f"{what}: waiting for the server to read {self.path}")
        except ServingError as error:
            raise RolloutError(f"{what}: the server says: {error.message}") from error
        deadline = time.monotonic() + self.wait
        while not done():
            if time.monotonic() > deadline:
                raise RolloutError(
                    f"{what}: not done within {self.wait:g} s. Does the server read {self.path} "
                    "(--model_config_file with --model_config_file_poll_wait_seconds)? With "
                    "--url grpc://host:port the file need not be polled"
                )
            time.sleep(_POLL_SECONDS)

    def _states(self) -> dict[int, VersionState]:
        assert self.server is not None
        try:
            return {state.version: state for state in self.server.status(self.model)}
        except NotFound:
            return {}

    def _serving_now(self) -> set[int]:
        return {version for version, one in self._states().items() if one.state == "AVAILABLE"}

    def _available(self, wanted: set[int]) -> bool:
        states = self._states()
        for version in wanted & states.keys():
            state = states[version]
            if state.state == "END" and state.error_code != "OK":
                raise RolloutError(
                    f"version {version} of model {self.model} does not load: "
                    f"{state.error_message}. Publish a repaired one under a higher number"
                )
        return all(v in states and states[v].state == "AVAILABLE" for v in wanted)

    def _labelled(self, moves: Sequence[Move]) -> bool:
        assert self.server is not None
        for move in moves:
            found: int | None = None
            try:
                found = self.server.metadata(self.model, label=move.label).version
            except InvalidArgument:
                pass  # the answer for an unknown label
            except ServingError:
                return False
            if found != move.after:
                return False
        return True

    def _put_back(self, original: ModelServerConfig) -> None:
        try:
            write_config(self.path, original)
        except OSError as error:  # the server is still told to go back
            self.say(f"putting the configuration back: {error.filename}: {error.strerror}")
        if self.server is not None:
            try:
                self.server.reload(original, timeout=self.wait)
            except Unimplemented:
                pass  # over REST: the server reads the file
            except ServingError as error:
                self.say(f"putting the configuration back: {error.message}")

    def _serving(self, config: ModelServerConfig, versions: set[int]) -> ModelServerConfig:
        """Return the configuration with these versions requested in addition."""
        policy = self._served(config).policy
        changed = copy_config(config)
        if policy.kind == "all":
            return changed
        asked = set(policy.versions)
        if policy.kind == "latest":
            asked = set(choose(self._on_disk(config), policy))
            self.say(
                "version policy: changed from latest to specific, because labelled versions must "
                "stay loaded"
            )
        if asked and max(versions) > max(asked):
            self.say(
                f"requests without label or version will go to version {max(versions)}, the "
                "highest that serves"
            )
        entry = find_entry(changed, self.model)
        entry.model_version_policy.Clear()
        entry.model_version_policy.specific.versions.extend(sorted(asked | versions))
        return changed

    def _served(self, config: ModelServerConfig) -> ServedModel:
        return next(m for m in served_models(config, may_log=True) if m.name == self.model)

    def _on_disk(self, config: ModelServerConfig) -> dict[int, Path]:
        try:
            return versions_on_disk(self._served(config).base_path)
        except NotFound:
            return {}

    def _check_on_disk(self, config: ModelServerConfig, versions: set[int]) -> None:
        found = self._on_disk(config)
        missing = sorted(versions - found.keys())
        if found and missing:
            raise RolloutError(
                f"model {self.model}: there is no version {missing[0]} in "
                f"{next(iter(found.values())).parent}; there are {sorted(found)}"
            )
