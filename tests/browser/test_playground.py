"""The playground in a real browser, against a real server."""

import json
import shlex
import ssl
import subprocess
import sys
import time
import urllib.request

import pytest

from gru_serving.client import connect
from tests.serving.certificate import certificate
from tests.serving.servers import running

from .conftest import REPOSITORY, until
from .hostile_names import CLASSES, HOSTILE, HOSTILE_MODEL
from .playground_page import address, answers

pytestmark = pytest.mark.browser
TOKEN = "0123456789abcdef0123456789abcdef"
SIZES = ({"width": 1200, "height": 900}, {"width": 360, "height": 740})
VIEWS = (("texts", "text"), ("series", "forecast"), ("texts", "model"), ("series", "model"))


def test_versions_checks_rates_and_programs(show, server):
    page = show("texts", "model").page
    page.get_by_role("button", name="Ask the golden requests").click()
    page.wait_for_selector("text=are answered as at export")
    until(page, "parseInt(document.querySelector('.tile b').textContent) > 0")
    states = page.get_by_role("region", name="Versions of texts").inner_text()
    assert "AVAILABLE" in states
    assert "stable" in states
    assert "update_gate" in page.get_by_role("region", name="Inputs and outputs").inner_text()
    with connect(server.rest) as client:
        tabs = {}
        for tab in page.get_by_role("tab").all():
            tab.click()
            tabs[tab.inner_text()] = page.locator("#snippet").inner_text()
        body = shlex.split(tabs["curl"].replace("\\\n", ""))[3]
        text = json.loads(body)["inputs"]["text"]
        expected = client.predict({"text": text}, "texts")
    curl = subprocess.run(["sh", "-c", tabs["curl"]], capture_output=True, check=True)
    assert json.loads(curl.stdout)["outputs"]["scores"][0] == pytest.approx(expected["scores"][0])
    label = expected["label"][0].decode()
    for name in ("Python client", "gRPC"):
        program = [sys.executable, "-W", "ignore", "-c", tabs[name]]
        said = subprocess.run(program, capture_output=True, cwd=REPOSITORY, check=True)
        assert label[:20].replace('"', "") in said.stdout.decode().replace("\\", "").replace(
            '"', ""
        )
    fetched = tabs["JavaScript"].replace("console.log", "window.said = ")
    page.evaluate(f"(async () => {{ {fetched} }})()")
    assert page.evaluate("window.said").get("label") == [label]


def test_a_changed_answer_is_found(show, server):
    """The button really compares: one golden answer is altered on its way to the page."""
    found = show("texts", "text")
    page = found.page

    def alter(route):
        golden = route.fetch().json()
        golden[1]["outputs"]["scores"][0][0] += 0.01
        route.fulfill(json=golden)

    page.route("**/golden.json*", alter)
    page.reload()
    page.wait_for_selector("#text")
    page.get_by_role("link", name="Model").click()
    page.get_by_role("button", name="Ask the golden requests").click()
    page.wait_for_selector("text=1 outputs are not as at export")


def test_tokens(visit, few_flags, tmp_path):
    (tmp_path / "tokens").write_text(TOKEN)
    key, cert = certificate(tmp_path)
    ssl_config = tmp_path / "ssl.config"
    quoted = [json.dumps(path.read_text()) for path in (key, cert)]
    ssl_config.write_text(f"server_key: {quoted[0]}\nserver_cert: {quoted[1]}\n")
    more = (f"--auth_token_file={tmp_path / 'tokens'}", f"--rest_ssl_config_file={ssl_config}")
    with running(tmp_path / "log", *few_flags, *more, ready=False) as server:
        origin = f"https://localhost:{server.rest_port}"
        context = ssl.create_default_context(cafile=str(cert))
        for _ in range(1800):
            try:
                urllib.request.urlopen(f"{origin}/readyz", context=context)
                break
            except OSError:
                time.sleep(0.1)
        url = address(server, "several", "text", "https")
        found = visit(url, origin, ignore_https_errors=True)
        found.expected = 99
        page = found.page
        page.locator("#token").fill("not-the-right-one")
        page.get_by_role("button", name="Use it").click()
        page.wait_for_selector("text=did not accept that one")
        page.locator("#token").fill(TOKEN)
        page.get_by_role("button", name="Use it").click()
        until(page, "document.querySelectorAll('.bars li').length == 3")
        kept = page.evaluate("[document.cookie, JSON.stringify(localStorage), "
                             "JSON.stringify(sessionStorage), location.href].join()")  # fmt: skip
        assert TOKEN not in kept
        page.get_by_role("link", name="Model").click()
        page.wait_for_selector("#snippet")
        assert TOKEN not in page.content()
        page.reload()
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_selector("text=wants a token, and none was given")


def test_a_server_that_goes_away(visit, few_flags, tmp_path):
    with running(tmp_path / "log", *few_flags) as server:
        found = visit(address(server, "several", "text"), server.rest)
        until(found.page, "document.querySelectorAll('.bars li').length == 3")
    found.expected = 9
    found.page.locator("#text").fill("still there?")
    found.page.wait_for_selector("text=The server does not answer")


def test_hostile_names_and_texts(show):
    for view in ("text", "model"):
        page = show(HOSTILE_MODEL, view).page
        assert HOSTILE_MODEL in page.title()
        if view == "text":
            page.locator("#text").fill(f"{HOSTILE}typed'\"> </textarea><script>hacked=1</script>")
            page.wait_for_timeout(400)
            assert CLASSES[0] in answers(page)
        assert page.locator("img").count() == 0


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(show, scheme, size, figures):
    for model, view in VIEWS:
        found = show(model, view, viewport=size, color_scheme=scheme)
        found.page.wait_for_timeout(200)
        for each in found.page.locator("summary").all():
            each.click()
        assert found.axe() == []
        assert found.fits()
    figures(f"axe-core, {scheme}, {size['width']} pixels: no violation in {len(VIEWS)} views")
