"""A report as a self-contained page with interactive pictures.

The page has the same text, tables and figures as the Markdown. If the folder holds the numbers of a
picture, the page draws them itself; other pictures are embedded unchanged.
"""

import base64
import html
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gru_training.errors import RunDirectoryError
from gru_training.runs.directory import write_whole

MOST_MISTAKES = 1000
MOST_LETTERS = 800
MOST_WORDS = 400
MOST_NUMBERS = 250_000
"""Most numbers in the page's forecasts; with more columns or longer windows there are fewer
forecasts.
"""
MOST_CLASSES = 200


def note_lines(notes: Iterable[str]) -> list[str]:
    """Write a paragraph of Markdown for each note on data, as one full sentence."""
    return [f"\nNote: {note}{'' if note.endswith('...') else '.'}" for note in notes]


def markdown_table(
    rows: Iterable[Iterable[object]], words: int = 1, text_last: bool = False
) -> list[str]:
    """Lay out a table of Markdown.

    Args:
        rows: Cells of each row, the headings first.
        words: Number of columns at the left that hold words; the others hold numbers.
        text_last: Whether the last column holds words, too.
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---" if number < words else "---:" for number in range(len(cells[0]))]
    if text_last:
        rule[-1] = "---"
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], f"|{'|'.join(rule)}|", *lines[1:]]


def page_data(folder: Path) -> dict[str, Any]:
    """Collect the data that the page draws, by the picture or link that they replace."""
    metrics = _json(folder / "metrics.json")
    sources: dict[str, Callable[[], Any]] = {
        "curves.png": lambda: _curves(_json(folder / "history.json"), metrics),
        "confusion_matrix.png": lambda: _answers(folder),
        "errors_by_horizon.png": lambda: _by_horizon(metrics),
        "coverage.png": lambda: [
            {"nominal": each["nominal"], "by_horizon": _numbers(each["by_horizon"], 4)}
            for each in metrics["intervals"]
        ],
        "forecasts.png": lambda: _forecasts(folder),
        "report.html": lambda: _marked(_json(folder / "marked_texts.json")),
        "comparison.png": lambda: _comparison(_json(folder / "comparison.json")),
    }
    found = {}
    for name, source in sources.items():
        try:
            data = source()
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError):
            continue  # another version's file, or a task with other figures
        if data is not None:
            found[name] = data
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _number(value: Any, digits: int = 6) -> float | None:
    return float(f"{float(value):.{digits}g}") if np.isfinite(value) else None


def _numbers(values: Any, digits: int = 6) -> Any:
    if np.ndim(values):
        return [_number(value, digits) if not np.ndim(value) else _numbers(value, digits)
                for value in values]  # fmt: skip
    return _number(values, digits)


def _curves(history: Any, metrics: Any) -> Any:
    if not history:
        return None
    names: dict[str, Any] = {}
    for name in history[0]["train"]:  # the loss may be one of the measures
        values = [record["validation"][name] for record in history]
        if values not in names.values():
            names[name] = values
    return {
        "epochs": [record["epoch"] for record in history],
        "best": metrics["best_epoch"],
        "curves": {
            name: {part: _numbers([record[part][name] for record in history])
                   for part in ("train", "validation")}
            for name in names
        },
    }  # fmt: skip


def _answers(folder: Path) -> Any:
    """Count labels and answers, and list the mistakes, the most confident first."""
    classes = _json(folder / "classes.json")
    numbers = {name: number for number, name in enumerate(classes)}
    if len(classes) > MOST_CLASSES:
        return None
    counts = np.zeros((len(classes), len(classes)), int)
    mistakes = []
    with (folder / "test_predictions.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            label, predicted = numbers[row["label"]], numbers[row["predicted"]]
            counts[label, predicted] += 1
            if label != predicted:
                probability = _number(row["scores"][predicted], 4)
                mistakes.append([number, label, predicted, probability, row["text"][:MOST_LETTERS]])
    mistakes.sort(key=lambda row: -row[3])
    return {
        "classes": classes,
        "counts": counts.tolist(),
        "mistakes": mistakes[:MOST_MISTAKES],
        "wrong": len(mistakes),
    }


def _marked(rows: Any) -> Any:
    """List texts with their words marked by their contribution to an answer."""
    return [
        {
            "answer": str(row["answer"]),
            "verdict": str(row["verdict"]),
            "words": list(zip(map(str, row["tokens"]), _numbers(row["scores"], 4), strict=True))[
                :MOST_WORDS
            ],
        }
        for row in rows
    ]


def _by_horizon(metrics: Any) -> Any:
    rows = {metrics["model"]["name"]: metrics["model"], **metrics["baselines"]}
    return {
        kind: {name: _numbers(row["test"]["by_horizon"][kind]) for name, row in rows.items()}
        for kind in ("mse", "mae")
    }


def _forecasts(folder: Path) -> Any:
    """List test windows with their forecasts, and following values that a later window shows."""
    series = _json(folder / "series.json")
    with np.load(folder / "test_windows.npz") as windows:
        histories, origins = windows["histories"], windows["origins"]
        forecasts, quantiles = windows["forecasts"], windows["quantiles"]
    with np.load(folder / "calibration.npz") as calibration:
        levels = calibration["levels"]
    names = list(series["target_columns"])
    columns = [list(series["columns"]).index(name) for name in names]
    steps = histories.shape[1]
    shown_history = min(steps, 2 * forecasts.shape[1] + 64)
    each = shown_history + forecasts.shape[1] * (2 + len(levels))
    count = int(np.clip(MOST_NUMBERS // (each * len(names)), 1, len(histories)))
    names = names[: max(1, MOST_NUMBERS // (each * count))]
    columns = columns[: len(names)]
    came: dict[int, np.ndarray] = {}
    for history, origin in zip(histories, origins, strict=True):
        came.update(zip(range(origin - steps, origin), history, strict=True))
    chosen = np.unique(np.linspace(0, len(histories) - 1, count).round().astype(int))
    nothing = np.full(histories.shape[2], np.nan)
    horizon = range(forecasts.shape[1])
    return {
        "columns": names,
        "more": len(series["target_columns"]) - len(names),
        "levels": _numbers(levels),
        "frequency": series["frequency"],
        "first": series["first_time"],
        "windows": [
            {
                "origin": int(origins[i]),
                "history": _numbers(histories[i, -shown_history:][:, columns].T, 5),
                "came": _numbers(
                    np.array([came.get(origins[i] + step, nothing) for step in horizon])[
                        :, columns
                    ].T,
                    5,
                ),
                "forecast": _numbers(forecasts[i][:, : len(names)].T, 5),
                "quantiles": _numbers(quantiles[i][:, : len(names)].transpose(1, 2, 0), 5),
            }
            for i in chosen
        ],
    }


def _comparison(comparison: Any) -> Any:
    """List each model's difference from the reference with its interval, by measure."""
    reference, *others = comparison["contenders"]
    return {
        "reference": reference["name"],
        "measures": {
            name: {
                "percent": style.endswith("%"),
                "higher": comparison["higher_is_better"][name],
                "rows": [
                    {"name": each["name"], "run": each["is_run"], "verdict": each["verdict"],
                     **{key: each["measures"][name]["difference"][key]
                        for key in ("value", "low", "high")}}
                    for each in others
                    if name in each["measures"] and each["measures"][name]["difference"]
                ],
            }
            for name, style in comparison["styles"].items()
        },
    }  # fmt: skip


TEMPLATE = Path(__file__).with_name("report.html")
PAGES = {"report.md": "report.html", "comparison.md": "comparison.html"}
"""The page of each Markdown file."""
_TABLE = '<div class="scroll" tabindex="0" role="region" aria-label="Table {}"><table>'


def write_report_page(folder: Path) -> Path | None:
    """Write the page of a run or of a comparison.

    Args:
        folder: Folder with the Markdown, its pictures and its numbers.

    Returns:
        The page; None where the folder holds no report.

    Raises:
        RunDirectoryError: A file cannot be read or written.
    """
    source = next((name for name in PAGES if (folder / name).is_file()), None)
    if source is None:
        return None
    try:
        markdown = (folder / source).read_text("utf-8")
        data = page_data(folder)
        title, body = _render(markdown, folder, data)
        page = TEMPLATE.read_text("utf-8")
        # Replacement goes from the last mark to the first, since inserted text may look like a
        # mark.
        for mark, text in (
            ("__DATA__", _in_script(data)),
            ("__BODY__", body),
            ("__TITLE__", html.escape(title)),
        ):
            before, _, after = page.partition(mark)
            page = before + text + after
        write_whole(folder / PAGES[source], page)
        return folder / PAGES[source]
    except (OSError, UnicodeError) as error:
        raise RunDirectoryError(f"cannot write the page of {folder / source}: {error}") from error


def _in_script(data: Mapping[str, Any]) -> str:
    """Escape JSON so that it cannot end the element that contains it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _render(markdown: str, folder: Path, data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the title and the page's body as HTML; tags in the Markdown become text."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tables = iter(range(1, 1 << 30))

    # A rule is called with the renderer, the tokens, its own position, options and environment.
    def table_open(*_: Any) -> str:
        return _TABLE.format(next(tables))

    def table_close(*_: Any) -> str:
        return "</table></div>"

    def image(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
        return _picture(tokens[index], folder, data)

    for name, rule in (("table_open", table_open), ("table_close", table_close), ("image", image)):
        reader.add_render_rule(name, rule)
    tokens = reader.parse(markdown)
    for token in tokens:
        _draw_link(token, data)
        # The page's policy allows no style attributes.
        if token.type in ("th_open", "td_open") and token.attrs.pop("style", ""):
            token.attrs["class"] = "number"
    title = next(
        (after.content for token, after in itertools.pairwise(tokens)
         if token.type == "heading_open"), "Report",
    )  # fmt: skip
    return title, reader.renderer.render(tokens, reader.options, {})


def _draw_link(token: Token, data: Mapping[str, Any]) -> None:
    """Replace a link that stands alone by a picture if the page draws its target."""
    if token.type == "inline" and token.children and token.children[0].type == "link_open":
        name = token.children[0].attrs.get("href")
        if name in data:
            token.children = [
                Token("image", "img", 0, attrs={"src": str(name)}, content=_text(token))
            ]


def _text(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _picture(token: Token, folder: Path, data: Mapping[str, Any]) -> str:
    name, text = str(token.attrs.get("src", "")), html.escape(token.content, quote=True)
    if name in data:
        return f'<span class="moving" data-picture="{html.escape(name, quote=True)}">{text}</span>'
    path = folder / name
    if path.name != name or path.suffix != ".png" or not path.is_file():
        return text
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{text}" src="data:image/png;base64,{content}">'
