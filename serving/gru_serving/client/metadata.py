"""The target of a request, and a server's description of a model: signatures, version states."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gru_serving.codecs.signature import DEFAULT_SIGNATURE, Signature
from gru_serving.errors import InvalidArgument


@dataclass(frozen=True)
class Target:
    """The version of a model that a request is for.

    Attributes:
        model: Name.
        version: Number; None for the highest that serves.
        label: Version label; not together with `version`.
    """

    model: str
    version: int | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model must be a name; got ''")
        if self.version is not None and not (
            isinstance(self.version, int | np.integer) and 0 <= self.version < 2**63
        ):
            raise ValueError(
                f"version must be at least 0 and below 2^63, an integer; got {self.version!r}"
            )
        if self.version is not None and self.label:
            raise ValueError(
                f"give version or label, not both; got version={self.version}, label={self.label!r}"
            )


@dataclass(frozen=True)
class Metadata:
    """The signatures of a loaded version: its inputs and outputs."""

    model: str
    version: int
    signatures: Mapping[str, Signature]

    def find(self, name: str) -> Signature:
        """Return a signature by name; empty for `serving_default`.

        Raises:
            InvalidArgument: There is none; names those there are.
        """
        wanted = name or DEFAULT_SIGNATURE
        if wanted not in self.signatures:
            callable_ones = sorted(one for one in self.signatures if not one.startswith("__"))
            raise InvalidArgument(
                f"model {self.model} version {self.version} has no signature {wanted!r}; "
                f"it has {callable_ones}"
            )
        return self.signatures[wanted]


@dataclass(frozen=True)
class VersionState:
    """State of one version: START, LOADING, AVAILABLE, UNLOADING or END."""

    version: int
    state: str
    error_code: str = "OK"
    error_message: str = ""


@dataclass(frozen=True)
class ListedVersion:
    """A version in a server's list of models."""

    version: int
    state: str
    labels: tuple[str, ...] = ()
    runtime: str = ""
    """`onnx`, `tensorflow` or `tflite`; empty if the version is not loaded or the server does not
    report it.
    """
    left_to_tensorflow: tuple[str, ...] = ()
    """Signatures for which the server loads TensorFlow when their first request comes."""


@dataclass(frozen=True)
class ListedModel:
    """A model in a server's list, its highest version first."""

    name: str
    versions: tuple[ListedVersion, ...]
