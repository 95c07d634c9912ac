"""A report as one page that needs nothing beside it: the Markdown, and what a reader can move.

The page has the same text, tables and figures as the Markdown. Where the folder holds the numbers
of a picture, the page draws them itself; other pictures are put into the page as they are.
"""

import base64
import html
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gru_training.errors import RunDirectoryError
from gru_training.runs.page_data import page_data
from gru_training.runs.whole_file import write_whole

TEMPLATE = Path(__file__).with_name("report.html")
PAGES = {"report.md": "report.html", "comparison.md": "comparison.html"}
"""The page of each Markdown file."""
_TABLE = '<div class="scroll" tabindex="0" role="region" aria-label="Table {}"><table>'


def write_report_page(folder: Path) -> Path | None:
    """Write the page of a run or of a comparison.

    Args:
        folder: Holds the Markdown, its pictures and its numbers.

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
        # From the last mark to the first: what is put in may itself look like a mark.
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
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _render(markdown: str, folder: Path, data: Mapping[str, Any]) -> tuple[str, str]:
    """The title, and the page's body as HTML; tags in the Markdown are text."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tables = iter(range(1, 1 << 30))

    # A rule gets the renderer, the tokens, the place of its own, options and environment.
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
        # The page's policy allows no styles in attributes.
        if token.type in ("th_open", "td_open") and token.attrs.pop("style", ""):
            token.attrs["class"] = "number"
    title = next(
        (after.content for token, after in itertools.pairwise(tokens)
         if token.type == "heading_open"), "Report",
    )  # fmt: skip
    return title, reader.renderer.render(tokens, reader.options, {})


def _draw_link(token: Token, data: Mapping[str, Any]) -> None:
    """Make a picture of a link that stands alone, where the page draws what it leads to."""
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
