"""Directives for tables that are read off the code.

    ```{settings} gru_training.sentiment.config.SentimentConfig
    ```

has a section for each part of a task's settings: flag, default, and what the docstring says.

    ```{server-metrics}
    ```

lists the metrics on the server's page for Prometheus, with their kinds and labels.
"""

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import tyro
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from gru_training.task import find_task

_SETTINGS = {"setting": 35, "default": 15, "meaning": 50}


class Settings(SphinxDirective):
    """Sections with the settings of a task."""

    required_arguments = 1
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """The settings of the class itself, then a section for each part."""
        task = find_task(self.arguments[0])
        config, name = task.settings, task.settings.__name__
        content: list[nodes.Node] = []
        own = [found for found in _fields(config) if not found[3]]
        content.append(_table(_SETTINGS, (_row(one, None) for one in own)))
        for field, text, _, part in _fields(config):
            if part is None:
                continue
            title = f"{name.removesuffix('Config')}: [{field.name}]"
            section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(title)])
            section += nodes.paragraph(text, text)
            rows = (_row(one, task.flags) for one in _fields(part))
            section += _table(_SETTINGS, rows)
            self.state.document.note_implicit_target(section)
            content.append(section)
        return content


class ServerMetrics(SphinxDirective):
    """A table of the server's metrics."""

    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """The table, by name."""
        from gru_serving.telemetry.metrics import Metrics
        from gru_serving.telemetry.version_metrics import VersionMetrics

        metrics = Metrics()
        VersionMetrics(metrics)
        rows = [
            (_code(one.name), [nodes.Text(one.kind)], _code(*one.labels))
            for one in sorted(metrics.families(), key=lambda one: one.name)
        ]
        return [_table({"metric": 5, "kind": 1, "labels": 4}, rows)]


def _fields(config: type) -> Iterator[tuple[dataclasses.Field[Any], str, Any, type | None]]:
    """Each field with its docstring and default, and the class of settings that it holds."""
    hints = typing.get_type_hints(config, include_extras=True)
    texts = _docstrings(config)
    for field in dataclasses.fields(config):
        hint = hints[field.name]
        if tyro.conf.Suppress in getattr(hint, "__metadata__", ()):
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        part = type(default) if dataclasses.is_dataclass(default) else None
        yield field, texts.get(field.name, ""), default, part


def _docstrings(config: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for parent in reversed(config.__mro__[:-1]):
        analyzer = ModuleAnalyzer.for_module(parent.__module__)
        for (scope, name), lines in analyzer.find_attr_docs().items():
            if scope == parent.__qualname__:
                found[name] = " ".join(" ".join(lines).split())
    return found


def _row(
    found: tuple[dataclasses.Field[Any], str, Any, type | None], flags: Sequence[str] | None
) -> Sequence[Any]:
    field, text, default, _ = found
    names = [field.name]
    if flags is None or field.name in flags:
        flag = field.name.replace("_", "-")
        names += [f"--{flag}", f"--no-{flag}"] if isinstance(default, bool) else [f"--{flag}"]
    return _code(*names), _code(_shown(default)), [nodes.Text(text)]


def _shown(default: Any) -> str:
    if default is None or default is dataclasses.MISSING or default == ():
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return str(default.as_posix() if isinstance(default, Path) else default)


def _code(*words: str) -> list[nodes.Node]:
    content: list[nodes.Node] = []
    for word in filter(None, words):
        if content:
            content.append(nodes.Text(", "))
        content.append(nodes.literal(word, word))
    return content


def _table(head: dict[str, int], rows: Iterator[Sequence[Any]] | Sequence[Sequence[Any]]) -> Any:
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in head.values()]
    group += nodes.thead("", _line([[nodes.Text(word)] for word in head]))
    group += nodes.tbody("", *(_line(row) for row in rows))
    return nodes.table("", group)


def _line(cells: Sequence[list[nodes.Node]]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells]
    return nodes.row("", *entries)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("settings", Settings)
    app.add_directive("server-metrics", ServerMetrics)
    return {"parallel_read_safe": True}
