"""The signatures of a model as steps around its networks, stored in `signatures.json` of a version.

Each signature names the steps before its network, the network, and the steps behind it. Steps read
values by name and add others::

    {"format": 2,
     "signatures": {
       "serving_default": {
         "before": [{"do": "tokenize", "source": "text", …}, {"do": "look_up", …}],
         "network": "answer",
         "after": [{"do": "probabilities", "source": "logits", …}, …],
         "outputs": {"scores": "scores", …},
         "rows_per_run": null}},
     "left_to_tensorflow": {"attribution": "why"}}

Data that several steps share, and large data, are stored in files beside it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_type_hints

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.operations import Arrays, tensors

FOLDER = Path("assets.extra", "onnx")
FILE = "signatures.json"
FORMAT = 2

Values = dict[str, Any]
"""Arrays or tensors by name: the inputs of a signature, and the values that steps and network
add.
"""


class DataFile(ABC):
    """Data of steps that has a file of its own.

    Attributes:
        file: Name of the file, beside the description.
    """

    file: ClassVar[str]

    @abstractmethod
    def text(self) -> str:
        """Return the content of the file."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Parse what `text` returned."""


class Files:
    """The files of a folder, each of which is read once.

    Args:
        folder: Folder of the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, DataFile] = {}

    def read(self, kind: type[DataFile], name: str) -> DataFile:
        """Return the content of a file.

        Raises:
            InvalidArgument: There is no such file, or it is of another kind.
        """
        if name not in self._read:
            path = self._folder / name
            try:
                self._read[name] = kind.parse(path.read_text("utf-8"))
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise InvalidArgument(f"{path}: cannot be read: {error!r}") from None
        return self._read[name]


class Described:
    """Data that is stored as JSON with the name of its class, `do`.

    Subclasses are frozen dataclasses of strings, numbers, tuples and `DataFile`s.

    Attributes:
        kind: Name of the class in JSON.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Described]]] = {}

    def __init_subclass__(cls, kind: str | None = None) -> None:
        if kind is not None:
            cls.kind = kind
            cls._kinds[kind] = cls

    def to_json(self) -> dict[str, Any]:
        """Return the name of the class and its fields; files appear by their names."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {"do": self.kind, **found, **{name: found[name].file for name in self.files()}}

    @classmethod
    def files(cls) -> Mapping[str, type[DataFile]]:
        """Return the classes of the fields that are files, by field name."""
        found = classes_of(cls).items()  # type: ignore[arg-type]
        return {name: of for name, of in found if issubclass(of, DataFile)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], files: Files) -> Self:
        """Restore the data that `to_json` returned.

        Args:
            entry: Name of the class and fields.
            files: Files that the entry names.

        Raises:
            InvalidArgument: The class is unknown to this release, or its fields are others.
        """
        given = dict(entry)
        name = given.pop("do", None)
        kind = cls._kinds.get(name)
        if kind is None or not issubclass(kind, cls):
            raise InvalidArgument(f"unknown step {name!r}")
        try:
            named = {field: files.read(of, given[field]) for field, of in kind.files().items()}
            return kind(**{field: tuples(value) for field, value in given.items()} | named)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(f"step {name!r}: {error!r}") from None


@cache
def classes_of(kind: type) -> Mapping[str, type]:
    """Return the classes of a dataclass's fields that are not types of JSON, by name."""
    hints = get_type_hints(kind)
    either = {each.name: (hints[each.name], *get_args(hints[each.name])) for each in fields(kind)}
    return {
        name: of
        for name, possible in either.items()
        for of in possible
        if isinstance(of, type) and (is_dataclass(of) or issubclass(of, DataFile))
    }


def tuples(value: Any) -> Any:
    """Convert lists of JSON to tuples."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


class Step(Described, ABC):
    """One step, which changes values in place and computes the same in both runtimes."""

    @abstractmethod
    def numpy(self, values: Values) -> None:
        """Perform the step on arrays.

        Raises:
            InvalidArgument: The values are refused, in the words of `graph`.
        """

    @abstractmethod
    def graph(self, values: Values) -> None:
        """Perform the step by TensorFlow operations; a refusal is raised when they run."""

    def resources(self) -> Sequence[Any]:
        """Return the TensorFlow tables that a module must hold in order to be saved."""
        return ()


class SharedStep(Step):
    """A step that is written once, in operations that arrays and tensors share."""

    @abstractmethod
    def do(self, values: Values, ops: Any) -> None:
        """Perform the step.

        Args:
            values: Arrays or tensors by name.
            ops: Operations on them, of `gru_serving.preprocessing.operations`.
        """

    def numpy(self, values: Values) -> None:
        """Perform the step on arrays."""
        self.do(values, Arrays)

    def graph(self, values: Values) -> None:
        """Perform the step by TensorFlow operations."""
        self.do(values, tensors())


class JsonFile(DataFile):
    """A frozen dataclass of numbers, texts, tuples and such dataclasses with a file of its own."""

    def text(self) -> str:
        """Return the fields by name."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"  # type: ignore[call-overload]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse what `text` returned."""
        found = json.loads(text)
        for name, kind in classes_of(cls).items():
            if found[name] is not None:
                found[name] = kind(**{each: tuples(of) for each, of in found[name].items()})
        return cls(**{name: tuples(value) for name, value in found.items()})


@dataclass(frozen=True)
class Signature:
    """One signature: the steps and the network between its inputs and its outputs.

    Attributes:
        before: Steps before the network.
        network: Name of the network, a graph of ONNX beside the description; None where the steps
            make all outputs.
        after: Steps behind the network.
        outputs: Values by the name that the signature gives them.
        rows_per_run: Rows that the network takes at once; None for any number.
    """

    before: Sequence[Step]
    network: str | None
    after: Sequence[Step]
    outputs: Mapping[str, str]
    rows_per_run: int | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps before and behind the network."""
        return (*self.before, *self.after)


@dataclass(frozen=True)
class Description:
    """The signatures that a server can answer without TensorFlow.

    Attributes:
        signatures: Signatures by name.
        left: Reasons why the others are left to TensorFlow, by name.
    """

    signatures: Mapping[str, Signature] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)

    def without(self, reasons: Mapping[str, str]) -> Description:
        """Return the description with some signatures left to TensorFlow, for reasons by name."""
        kept = {name: each for name, each in self.signatures.items() if name not in reasons}
        return replace(self, signatures=kept, left={**self.left, **reasons})

    def files(self) -> Iterator[DataFile]:
        """Yield the files of all steps once each."""
        steps = (step for each in self.signatures.values() for step in each.steps)
        found = (getattr(step, name) for step in steps for name in step.files())
        yield from {each.file: each for each in found}.values()

    def write(self, folder: Path) -> None:
        """Write the description and the files of its steps into a folder."""
        content = {
            "format": FORMAT,
            "signatures": {
                name: {
                    "before": [step.to_json() for step in each.before],
                    "network": each.network,
                    "after": [step.to_json() for step in each.after],
                    "outputs": dict(each.outputs),
                    "rows_per_run": each.rows_per_run,
                }
                for name, each in self.signatures.items()
            },
            "left_to_tensorflow": dict(self.left),
        }
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / FILE).write_text(f"{text}\n", "utf-8", newline="\n")
        for each in self.files():
            (folder / each.file).write_text(each.text(), "utf-8", newline="\n")

    @classmethod
    def read(cls, version: Path) -> Description | None:
        """Read the description of a version; None if it has none.

        Raises:
            InvalidArgument: The file is not what an export of this release writes.
        """
        # Step classes are registered by name when their modules are imported.
        from gru_serving.preprocessing import (  # noqa: F401
            answers,
            calendar,
            checks,
            examples,
            series,
            texts,
        )

        folder = version / FOLDER
        path = folder / FILE
        try:
            content = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"{path}: expected JSON, got {error}") from None
        try:
            if content["format"] != FORMAT:
                raise InvalidArgument(
                    f"expected format {FORMAT}, got {content['format']!r}; it was written by "
                    "another release: export the run again"
                )
            files = Files(folder)
            signatures = {
                name: Signature(
                    [Step.from_json(step, files) for step in each["before"]],
                    each["network"],
                    [Step.from_json(step, files) for step in each["after"]],
                    each["outputs"],
                    each["rows_per_run"],
                )
                for name, each in content["signatures"].items()
            }
            return cls(signatures, content["left_to_tensorflow"])
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}: {error}") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidArgument(f"{path}: not a table of signatures: {error!r}") from None
