"""Cases of the kit: read from the TOML files of `cases/`, one table a case.

A case says what TF Serving does and where that stands, the request, and the answer that follows.
The README of that folder describes the keys. A case of both transports gives two checks; a case
with `rows` gives one for each row.
"""

import string
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("cases")
RELEASE = "2.20.0"
"""Release of TF Serving whose sources and tests the cases cite."""
_KEYS = {
    *("name", "rule", "source", "rows", "columns", "table"),
    *("rest", "body", "headers", "encoding", "status", "json", "text", "answered"),
    *("grpc", "request", "answer", "timeout", "error", "contains", "steps", "restore"),
}


@dataclass(frozen=True)
class Case:
    """One request over one transport, and the answer of TF Serving.

    Attributes:
        name: Unique name, such as `unknown model (grpc)`.
        topic: Name of the file, such as `paths`.
        rule: Sentence that says what TF Serving does.
        source: Place of the rule: a file below `tensorflow_serving/`, and a function or test.
        transport: `rest` or `grpc`.
        wants: Further keys of the case, with the columns of its row filled in.
    """

    name: str
    topic: str
    rule: str
    source: str
    transport: str
    wants: dict[str, Any] = field(hash=False)

    @property
    def asked(self) -> str:
        """The request, as far as it is one, on a line."""
        keys = ("rest", "body") if self.transport == "rest" else ("grpc", "request")
        return " ".join(self.wants[key] for key in keys if key in self.wants)


def read_cases(folder: Path = CASES) -> list[Case]:
    """Read all cases of a folder, sorted by file.

    Args:
        folder: Folder of TOML files.

    Raises:
        ValueError: A case lacks a key, has an unknown one, or has the name of another.
    """
    cases: list[Case] = []
    for path in sorted(folder.glob("*.toml")):
        found = tomllib.loads(path.read_text("utf-8"))
        for raw in found["case"]:
            cases += _expanded(raw, path, found.get("tables", {}), found.get("words", {}))
    names = [case.name for case in cases]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"cases: expected a name of its own for each; got twice: {twice}")
    return cases


def _expanded(
    raw: dict[str, Any], path: Path, tables: dict[str, Any], words: dict[str, str]
) -> Iterator[Case]:
    where = f"{path.name}: case {raw.get('name', '?')!r}"
    if unknown := raw.keys() - _KEYS:
        raise ValueError(f"{where}: expected keys of {sorted(_KEYS)}; got {sorted(unknown)}")
    if missing := {"name", "rule", "source"} - raw.keys():
        raise ValueError(f"{where}: expected the keys {sorted(missing)}, which are missing")
    if not raw.keys() & {"rest", "grpc", "steps"}:
        raise ValueError(f"{where}: expected a request, as rest, grpc or steps; got none")
    table = tables[raw["table"]] if "table" in raw else raw
    columns, rows = table.get("columns", []), table.get("rows", [[]])
    for row in rows:
        values = dict(zip(columns, map(str, row), strict=True))
        filled = {key: value for key, value in raw.items() if key not in ("rows", "columns")}
        for names in (values, words, values):  # words have columns, and columns words
            filled = _filled(filled, names)
        name = f"{raw['name']}: {row[0]}" if row else raw["name"]
        for transport in ("rest", "grpc"):
            if transport in raw or ("steps" in raw and transport == "grpc"):
                fixed = filled["rule"], filled["source"], transport
                yield Case(f"{name} ({transport})", path.stem, *fixed, filled)


def _filled(value: Any, values: dict[str, str]) -> Any:
    """Put columns or words into all texts of a case."""
    if isinstance(value, str) and values:
        return string.Template(value).safe_substitute(values)
    if isinstance(value, dict):
        return {key: _filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    return value
