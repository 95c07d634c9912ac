"""The site of the documentation: whole, linked, self-contained, and built strictly."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import gru_serving.client
import gru_training
import keras_gru
import keras_gru.convert
import keras_gru.functional
import keras_gru.introspection
from gru_serving.__main__ import COMMANDS
from gru_training.task import TASKS

pytest.importorskip("pydata_sphinx_theme", reason="of the extra docs")

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
SPHINX = ROOT / "docs" / "sphinx"
MODULES = (
    keras_gru,
    keras_gru.convert,
    keras_gru.functional,
    keras_gru.introspection,
    gru_serving.client,
    gru_training,
)
LAYERS = ("GRU", "GRUCell", "GRUEncoder", "MGU", "MGUCell", "CoupledGRU", "CoupledGRUCell")
# A public function and a public method that nobody has written a word about.
SILENT = """
import keras_gru
keras_gru.silent = lambda: None
keras_gru.__all__.append("silent")
keras_gru.GRU.hush = lambda self: None
"""


def run(code, *arguments):
    """Run Python where the site's modules can be imported; no terminal, and a narrow one."""
    environment = {**os.environ, "PYTHONPATH": str(SPHINX), "COLUMNS": "40"}
    return subprocess.run(
        [sys.executable, "-c", f"import sys; from pathlib import Path\n{code}", *arguments],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


class Links(HTMLParser):
    """What a page links to, what it loads by itself, and where it can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(attributes["href"])
        elif tag != "a" and "src" in attributes:
            self.loaded.append(attributes["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    work = tmp_path_factory.mktemp("site")
    done = run(
        "from build_site import build, stage\n"
        "work = Path(sys.argv[1])\n"
        "stage(work / 'source')\n"
        "sys.exit(build(work / 'source', work / 'html'))",
        work,
    )
    assert done.returncode == 0, done.stderr
    return work / "html"


@pytest.fixture(scope="module")
def pages(site):
    return {
        path: Links(path.read_text("utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts  # templates of the theme
    }


def test_every_page_of_the_repository_is_in_it(site):
    written = [page for page in ROOT.glob("docs/**/*.md") if SPHINX not in page.parents]
    written += [*ROOT.glob("[A-Z]*.md"), ROOT / "keras_gru/DERIVATION.md"]
    assert len(written) > 30
    for page in written:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").is_file(), page


def test_links_and_anchors_lead_somewhere(pages):
    count = 0
    for page, found in pages.items():
        for link in found.links + found.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), (page, link)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors | {""}, (page, link)
            count += 1
    assert count > 1000


def test_links_to_pages_are_named_by_titles(site):
    named_by_file = re.compile(r"<a [^>]*>(?:<[^>]+>)*[\w-]+\.md(?:<[^>]+>)*</a>")
    for page in site.rglob("*.html"):
        assert not named_by_file.search(page.read_text("utf-8")), page
    assert named_by_file.search('<a class="x" href="fitting.html"><span>fitting.md</span></a>')


def test_pictures_for_light_and_dark(site):
    for page in ("index.html", "README.html"):
        text = (site / page).read_text("utf-8")
        for theme in ("light", "dark"):
            assert re.search(rf'<img [^>]*class="[^"]*only-{theme}[^"]*"[^>]*{theme}', text), page


def test_nothing_is_fetched_from_elsewhere(site, pages):
    for page, found in pages.items():
        for link in found.loaded:
            assert not urlsplit(link).netloc, (page, link)
    for sheet in site.rglob("*.css"):
        for link in re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", sheet.read_text("utf-8")):
            assert link.startswith("data:") or not urlsplit(link).netloc, (sheet, link)


def test_reference_has_every_public_name(site):
    anchors = set().union(
        *(Links(path.read_text("utf-8")).anchors for path in (site / "reference").glob("*.html"))
    )
    for module in MODULES:
        for name in module.__all__:
            assert {f"{module.__name__}.{name}", f"module-{module.__name__}.{name}"} & anchors, name
    methods = {"keras_gru.GRU.call", "keras_gru.GRU.reset_state", "keras_gru.GRU.path"}
    methods |= {"gru_training.Forecaster.fit", "gru_serving.client.Client.predict"}
    assert methods <= anchors
    of_keras = {"build", "get_config", "compute_mask", "inner_loop", "get_dropout_mask"}
    assert not {f"keras_gru.{name}.{method}" for name in LAYERS for method in of_keras} & anchors


def test_reference_has_every_command(site):
    serve = (site / "reference/gru_serve.html").read_text("utf-8")
    train = (site / "reference/gru_train.html").read_text("utf-8")
    for name in COMMANDS:
        assert f'id="gru-serve-{name}"' in serve
    for name in (*TASKS, "tune", "check", "resume", "predict", "compare", "report", "forecast"):
        assert f'id="gru-train-{name}"' in train
    assert "--model_base_path" in serve
    assert "--text-column" in train
    assert "\x1b" not in serve + train
    assert "What to train on it: sentiment, forecasting or language;" in train  # not wrapped at 40


def test_faults_are_found(tmp_path):
    done = run(
        f"{SILENT}\n"
        "from build_site import build, stage\n"
        "work = Path(sys.argv[1])\n"
        "stage(work / 'source')\n"
        "with (work / 'source/docs/how_to/layer.md').open('a') as page:\n"
        "    page.write('\\n[one](nowhere.md) [two](../fitting.md#nowhere) [three](#nowhere)\\n')\n"
        "    page.write('\\n[four](nowhere/) ![five](nowhere.png)\\n')\n"
        "(work / 'source/docs/alone.md').write_text('# Alone\\n')\n"
        "sys.exit(build(work / 'source', work / 'html'))",
        tmp_path,
    )
    assert done.returncode != 0
    faults = [line for line in done.stderr.splitlines() if "source/" in line and "WARNING" in line]
    for fault in (
        r"docs/how_to/layer\.md:\d+: .*'nowhere\.md'",
        r"docs/how_to/layer\.md:\d+: .*'docs/fitting': 'nowhere'",
        r"docs/how_to/layer\.md:\d+: .*not found: 'nowhere'",
        r"docs/how_to/layer\.md:\d+: .*nowhere/",
        r"docs/how_to/layer\.md:\d+: .*nowhere\.png",
        r"docs/alone\.md: .*toctree",
        r"reference/layer\.md: .*keras_gru\.silent",
        r"reference/layer\.md: .*keras_gru\.GRU\.hush",
    ):
        assert any(re.search(fault, line) for line in faults), (fault, faults)
    assert len(faults) == 8, faults
