"""Chromium, and servers with models for it: trained ones with hostile names, and large ones."""

import hashlib
import os
import shutil
import time
from pathlib import Path

import pytest
from google.protobuf import text_format

from gru_serving.protos.model_server_config_pb2 import ModelServerConfig
from tests.serving.servers import running

from .hostile_names import HOSTILE_MODEL
from .playground_page import address

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "browser-test"
AXE = REPOSITORY / "web" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def figures():
    """Takes a sentence with what was measured; `make browser-test` prints them in the end."""

    def note(sentence):
        if path := os.environ.get("KERAS_GRU_FIGURES"):
            with Path(path).open("a") as file:
                file.write(f"{sentence}\n")

    return note


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        yield chromium
        chromium.close()


def until(page, expression, arg=None, seconds=60):
    """Wait until an expression, or a function of `arg`, is true in the page.

    Playwright's own way evaluates strings in the page, which the playground's policy forbids.
    """
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression, arg):
        assert time.monotonic() < deadline, (expression, arg, page.locator("main").inner_text())
        page.wait_for_timeout(20)


class Visit:
    """A page, with all that it logged and asked for."""

    def __init__(self, context, origin):
        self.page = context.new_page()
        self.errors = []
        self.strangers = []
        self.expected = 0
        self.page.on("console", lambda said: said.type == "error" and self.note(said.text))
        self.page.on("pageerror", lambda error: self.note(str(error)))
        self.page.on("dialog", lambda dialog: self.note(f"dialog: {dialog.message}"))
        self.page.on("request", lambda asked: self.look(asked.url, origin))

    def note(self, text):
        # Chromium itself reports answers such as 400; the page shows them in words.
        if "Failed to load resource" in text and self.expected:
            self.expected -= 1
        else:
            self.errors.append(text)

    def look(self, url, origin):
        if not url.startswith((origin, "data:", "blob:")):
            self.strangers.append(url)

    def check(self):
        assert self.errors == []
        assert self.strangers == []
        assert self.page.evaluate("window.hacked ?? null") is None

    def axe(self):
        """The violations that axe-core finds, each with the elements."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
            for one in found["violations"]
        ]

    def fits(self):
        """Whether nothing is wider than the window."""
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        return wide <= self.page.evaluate("innerWidth")


@pytest.fixture
def visit(browser):
    """Opens pages; in the end nothing may have gone wrong in any of them."""
    contexts, visits = [], []

    def open_page(url, origin=None, **options):
        options = {"viewport": {"width": 1200, "height": 900}, "bypass_csp": False, **options}
        context = browser.new_context(**options)
        contexts.append(context)
        found = Visit(context, origin or url.split("#")[0])
        visits.append(found)
        if url:
            found.page.goto(url)
        return found

    yield open_page
    for one in visits:
        one.check()
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def made():
    """Runs and models, kept from run to run while the code that makes them is the same."""
    from .trained_models import make_all

    here = REPOSITORY / "tests" / "browser"
    sources = [here / f"{name}.py" for name in ("big_models", "hostile_names", "trained_models")]
    for folder in ("keras_gru", "training/gru_training", "serving/gru_serving/export"):
        sources += sorted((REPOSITORY / folder).rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    place = BUILD / digest
    if not place.exists():
        shutil.rmtree(BUILD, ignore_errors=True)
        aside = BUILD / "aside"
        aside.mkdir(parents=True)
        make_all(aside)
        aside.rename(place)
    return place


@pytest.fixture(scope="session")
def trained(made):
    """Runs of a text classifier and a forecaster, both with hostile names."""
    return {name: made / "runs" / name for name in ("texts", "series")}


@pytest.fixture(scope="session")
def models(made):
    """Base paths by model name."""
    root = made / "models"
    return {HOSTILE_MODEL: root / "texts", **{path.name: path for path in root.iterdir()}}


@pytest.fixture(scope="session")
def flags(models, tmp_path_factory):
    """Flags of a server of all these models, with its metrics."""
    folder = tmp_path_factory.mktemp("flags")
    config = ModelServerConfig()
    for name, path in models.items():
        one = config.model_config_list.config.add(
            name=name, base_path=str(path), model_platform="tensorflow"
        )
        one.model_version_policy.latest.num_versions = 2
        if name == "texts":
            one.version_labels["stable"] = 1
    (folder / "models.config").write_text(text_format.MessageToString(config), "utf-8")
    (folder / "monitoring.config").write_text("prometheus_config { enable: true }")
    return (
        f"--model_config_file={folder / 'models.config'}",
        f"--monitoring_config_file={folder / 'monitoring.config'}",
        "--allow_version_labels_for_unavailable_models",
        "--enable_playground",
    )


@pytest.fixture(scope="session")
def few_flags(models):
    """Flags of a server that starts at once."""
    return ("--model_name=several", f"--model_base_path={models['several']}", "--enable_playground")


@pytest.fixture(scope="session")
def server(flags, tmp_path_factory):
    with running(tmp_path_factory.mktemp("server") / "log", *flags) as server:
        yield server


@pytest.fixture
def show(visit, server):
    """Opens a view of a model in the playground, and waits until it is ready."""

    def show(model, view, **options):
        found = visit(address(server, model, view), f"{server.rest}/", **options)
        ready = {"text": "#text", "forecast": "#value", "model": "#snippet"}[view]
        found.page.wait_for_selector(ready, state="attached")
        if view != "model":
            until(found.page, "document.querySelector('.status').textContent")
        return found

    return show
