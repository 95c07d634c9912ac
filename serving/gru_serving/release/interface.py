"""The interface of a version on which clients rely, and the changes of a new version that break it.

Requests without a label go to the highest version. A version with other inputs, outputs, classes
or columns would answer them without an error, and wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gru_serving.codecs.dtypes import by_number
from gru_serving.codecs.json_predict import read_json
from gru_serving.codecs.signature import Signature, TensorInfo
from gru_serving.errors import InterfaceChangeError, InvalidArgument, NotFound
from gru_serving.printable import escaped
from gru_serving.storage.saved_model import read_signatures
from gru_serving.storage.version_scan import versions_on_disk

MODEL_CARD = Path("assets.extra") / "model_card.json"
ACCEPT_FLAG = "--allow-interface-change"
ACCEPT_HELP = (
    "accept a version without inputs, outputs, classes or columns that clients of the version "
    "before it rely on"
)

_PROMISES = {
    "task": "the task",
    "target": "the kind of target",
    "classes": "the classes",
    "unit": "the unit of tokens",
    "columns": "the input columns",
    "future_columns": "the columns known in advance",
    "forecast_columns": "the target columns",
    "frequency": "the frequency",
    "horizon": "the horizon",
    "levels": "the levels of the quantiles",
}
"""Entries of the model card that define what an answer means, with the names shown for them."""
_TAGS = ("serve",)
_NAMES_SHOWN = 5


@dataclass(frozen=True)
class Interface:
    """The parts of a version that clients rely on.

    Attributes:
        signatures: Signatures by name; None where the model file has none that can be read.
        promises: Entries of its model card, those of `_PROMISES`.
    """

    signatures: Mapping[str, Signature] | None
    promises: Mapping[str, Any]

    @classmethod
    def read(cls, version: Path) -> Interface:
        """Read a version's model file and model card.

        Args:
            version: The version's directory.

        Raises:
            ValueError: The model card is not a JSON object.
            OSError: A file cannot be read.
        """
        found = read_signatures(version, _TAGS)
        signatures = None
        if found is not None:
            signatures = {
                name: Signature.from_proto(proto)
                for name, proto in found.signature_def.items()
                if not name.startswith("__")
            }
        return cls(signatures, read_promises(version))

    def broken_by(self, new: Interface) -> list[str]:
        """List what clients of this version would no longer find in a new one.

        Further signatures, outputs and entries of the card break nothing. The sizes of `gates` and
        of a `state`, which is handed back as it came, belong to the network.

        Args:
            new: The interface of the version that would take this one's place.

        Returns:
            One sentence for each difference; empty where there is none.
        """
        said = changed_promises(self.promises, new.promises)
        if self.signatures is not None and new.signatures is not None:
            for name, signature in sorted(self.signatures.items()):
                said += _broken_signature(name, signature, new.signatures.get(name))
        return said


def read_promises(version: Path) -> dict[str, Any]:
    """Read what a version's model card says of the meaning of its answers.

    Args:
        version: The version's directory.

    Returns:
        The entries of `_PROMISES` that the card has; none where there is no card.

    Raises:
        ValueError: The model card is not a JSON object.
        OSError: The card cannot be read.
    """
    card = read_card(version) or {}
    return {key: card[key] for key in _PROMISES if key in card}


def read_card(version: Path) -> dict[str, Any] | None:
    """Read a version's model card; None where it has none.

    Raises:
        ValueError: The model card is not a JSON object.
        OSError: The card cannot be read.
    """
    card = version / MODEL_CARD
    if not card.exists():
        return None
    try:
        content = read_json(card.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{card}: expected JSON; got: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{card}: expected a JSON object; got a {type(content).__name__}")
    return content


def changed_promises(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """List the entries that two model cards both have and that differ, as sentences."""
    return [
        f"{name}: {_change(old[key], new[key])}"
        for key, name in _PROMISES.items()
        if key in old and key in new and old[key] != new[key]
    ]


def check_interface(old: Path, new: Path) -> None:
    """Refuse a version that breaks what clients of another rely on.

    Args:
        old: The directory of the version that serves.
        new: The directory of the version that would take its place.

    Raises:
        InterfaceChangeError: Clients of `old` would break; the message lists how.
        OSError: A file of a version cannot be read.
    """
    try:
        broken = Interface.read(old).broken_by(Interface.read(new))
    except ValueError as error:
        said = escaped(str(error))
        raise InterfaceChangeError(f"{said}; {ACCEPT_FLAG} leaves out the comparison") from None
    if broken:
        # Names of classes and tensors are chosen by the authors of the versions.
        listed = "".join(f"\n  {escaped(sentence)}" for sentence in broken)
        raise InterfaceChangeError(
            f"its clients would not find what version {old.name} has:{listed}\n"
            f"Give it a base path and a model name of its own, or add {ACCEPT_FLAG} if all clients "
            "know."
        )


def check_next_version(base: Path, new: Path) -> None:
    """Refuse a version that breaks what clients of the highest version of a base path rely on.

    Args:
        base: The base path of the served model; may be empty.
        new: The directory of the version to be published there.

    Raises:
        InterfaceChangeError: Clients would break; the message lists how.
        OSError: A file of a version cannot be read.
    """
    try:
        found = versions_on_disk(base)
    except NotFound:
        return
    if found:
        check_interface(found[max(found)], new)


def _change(before: Any, after: Any) -> str:
    """Describe the change of an entry of the card."""
    if not (isinstance(before, list) and isinstance(after, list)):
        return f"{before!s:.200} became {after!s:.200}"
    then, now = set(map(str, before)), set(map(str, after))  # a hundred thousand, perhaps
    gone = [one for one in before if str(one) not in now]
    added = [one for one in after if str(one) not in then]
    parts = [f"{_listed(gone)} gone"] * bool(gone) + [f"{_listed(added)} new"] * bool(added)
    return ", ".join(parts) or f"their order changed from {_listed(before)} to {_listed(after)}"


def _listed(names: list[Any]) -> str:
    shown = ", ".join(map(str, names[:_NAMES_SHOWN]))
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


def _broken_signature(name: str, old: Signature, new: Signature | None) -> list[str]:
    if new is None:
        return [f"signature {name}: gone"]
    said = []
    for side in ("inputs", "outputs"):
        before, after = getattr(old, side), getattr(new, side)
        for alias in sorted(before):
            if alias not in after:
                said.append(f"signature {name}: {side[:-1]} {alias} is gone")
            elif (then := _form(name, alias, before[alias])) != (
                now := _form(name, alias, after[alias])
            ):
                said.append(f"signature {name}: {side[:-1]} {alias} was {then} and is {now}")
    required = sorted(new.inputs.keys() - old.inputs.keys() - new.defaults.keys())
    return said + [f"signature {name}: input {alias} is new" for alias in required]


def _form(signature: str, alias: str, tensor: TensorInfo) -> str:
    """Write a tensor's type and shape; only the rank if the network determines its sizes."""
    shape = tensor.shape
    if shape is None:
        sizes = "any shape"
    else:
        hidden = signature == "gates" or alias == "state"
        sizes = f"({', '.join('?' if hidden or size < 0 else str(size) for size in shape)})"
    try:
        return f"{by_number(tensor.dtype).name} {sizes}"
    except InvalidArgument:  # a type that no request can hold
        return f"type {tensor.dtype} {sizes}"
