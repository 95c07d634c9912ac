"""The documentation as a site: `python docs/sphinx/build_site.py` writes the folder `site`.

Pages are taken as they lie in the repository, at the same paths, so that their links work in both
places. Only the pages that put them in order, and those that Sphinx makes from the code, are here,
in `pages`. Every warning is an error: a link or an anchor that leads nowhere, a page in no part, a
public name without a docstring.
"""

import re
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx_build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docker/README.md",
    "keras_gru/DERIVATION.md",
)
_LINK = re.compile(r"(?:\]\(|\{image\} )([^)#:\s]+)")
_NAMED_BY_FILE = re.compile(r"\[`?([\w-]+\.md)`?\]\(((?:[^)#:\s]*/)?\1(?:#[^)\s]*)?)\)")
_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]+)">\s*</picture>'
)
_LINK_TO_FOLDER = re.compile(r"\[([^]]+)\]\(([^):\s]+/)\)")


def stage(source: Path) -> None:
    """Put the pages together, with the files that they show or link to.

    Args:
        source: A folder that does not exist.
    """
    shutil.copytree(HERE / "pages", source)
    shutil.copytree(ROOT / "docs", source / "docs", ignore=shutil.ignore_patterns(HERE.name))
    for name in PAGES:
        _copy(name, source)
    for page in list(source.rglob("*.md")):
        text = _PICTURE.sub(_two_pictures, page.read_text("utf-8"))
        for link in _LINK.findall(text):
            name = (page.parent / link).resolve()
            if name.is_relative_to(source):
                _copy(str(name.relative_to(source)), source)
        text = _NAMED_BY_FILE.sub(r"[](\2)", text)  # the title of the page takes that place
        page.write_text(_without_folders(text, ROOT / page.parent.relative_to(source)), "utf-8")


def _two_pictures(picture: re.Match[str]) -> str:
    """A picture for light and dark, as the theme wants it: its reader can choose either."""
    return "\n".join(
        f"```{{image}} {picture[theme]}\n:class: only-{theme}\n:alt: {picture['alt']}\n```\n"
        for theme in ("light", "dark")
    )


def _without_folders(text: str, here: Path) -> str:
    """A page without its links to folders: a site does not list them."""
    for label, folder in _LINK_TO_FOLDER.findall(text):
        if (here / folder).is_dir():
            text = text.replace(f"[{label}]({folder})", label)
    return text


def _copy(name: str, source: Path) -> None:
    if (ROOT / name).is_file() and not (source / name).exists():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)


def build(source: Path, site: Path) -> int:
    """Build staged pages; return the exit status, 0 where there was no warning."""
    options = ["-b", "html", "-W", "-E", "-a", "-q", "--keep-going", "-c", str(HERE)]
    return sphinx_build([*options, "-d", str(site.with_name("doctrees")), str(source), str(site)])


def main() -> int:
    """Build in `build/docs`; `site` is replaced only by a whole site."""
    work = ROOT / "build" / "docs"
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "source")
    status = build(work / "source", work / "html")
    if status == 0:
        shutil.rmtree(ROOT / "site", ignore_errors=True)
        (work / "html").rename(ROOT / "site")
        sys.stdout.write(f"{ROOT / 'site' / 'index.html'}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
