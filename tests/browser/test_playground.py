"""The playground in a real browser, against a real server."""

import csv
import io
import json
import re
import shlex
import ssl
import subprocess
import sys
import time
import urllib.request

import pytest

from serving.client import connect
from tests.serving.certificate import certificate
from tests.serving.conftest import running

from .big_models import SERIES, TOPICS
from .conftest import REPOSITORY, until
from .hostile_names import CLASSES, COLUMNS, HOSTILE, HOSTILE_MODEL

HORIZON, LOOKBACK = 12, 48
pytestmark = pytest.mark.browser
TOKEN = "0123456789abcdef0123456789abcdef"
SIZES = ({"width": 1200, "height": 900}, {"width": 360, "height": 740})
VIEWS = (("texts", "text"), ("series", "forecast"), ("texts", "model"), ("series", "model"))


def address(server, model, view, scheme="http"):
    from urllib.parse import urlencode

    query = urlencode({"model": model, "view": view})
    return f"{scheme}://localhost:{server.rest_port}/playground/#{query}"


@pytest.fixture
def show(visit, server):
    def show(model, view, **options):
        found = visit(address(server, model, view), f"{server.rest}/", **options)
        ready = {"text": "#text", "forecast": "#value", "model": "#snippet"}[view]
        found.page.wait_for_selector(ready, state="attached")
        if view != "model":
            until(found.page, "document.querySelector('.status').textContent")
        return found

    return show


def answers(page):
    """The label, and the bars by name."""
    names = page.locator(".answer-card:visible .name").all_inner_texts()
    values = page.locator(".answer-card:visible .bars .number").all_inner_texts()
    return dict(zip(names, values, strict=True))


def test_the_answer_follows_as_you_type(show, server):
    page = show("texts", "text").page
    page.locator("#text").fill("")
    text = "The plot is dull, but the ending is wonderful."
    page.locator("#text").press_sequentially(text, delay=5)
    until(page, "[...document.querySelectorAll('[data-i]')].length > 5")
    with connect(server.rest) as client:
        scores = client.predict({"text": [text]}, "texts")["scores"][0]
        gates = client.predict({"text": [text]}, "texts", signature="gates")
    shown = [f"{100 * score:.1f} %" for score in scores]
    until(page,
        "want => [...document.querySelectorAll('.bars .number')].map(e => e.textContent).join() "
        "== want", arg=",".join(shown),
    )  # fmt: skip
    assert list(answers(page)) == list(CLASSES)
    words = [token.decode() for token in gates["tokens"][0]]
    until(
        page,
        "want => [...document.querySelectorAll('[data-i]')].map(e => e.textContent).join() == want",
        arg=",".join(words),
    )
    with connect(server.rest) as client:
        asked = {"text": [text], "label": [""]}
        due = client.predict(asked, "texts", signature="attribution")["attribution"][0]
    until(page, "document.body.innerText.includes('the share that each word has in the answer')")
    signs = page.locator("[data-i]").evaluate_all("all => all.map(e => e.className)")
    assert [sign == "towards" for sign in signs] == [share >= 0 for share in due]
    page.locator("[data-i]").nth(3).hover()
    read = page.locator(".readout").first.inner_text()
    assert read.startswith(f"4 “{words[3]}”")
    assert f"update gate {gates['update_gate'][0, 3].mean():.3f}" in read
    page.locator(".chart").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".readout").first.inner_text().startswith(f"5 “{words[4]}”")
    assert page.locator(".chart").first.get_attribute("aria-valuetext").startswith(words[4])
    page.get_by_text("Each unit").click()
    page.locator("details canvas").hover(position={"x": 5, "y": 5})
    assert re.search(r"unit \d+: ", page.locator("details .readout").inner_text())
    page.get_by_text("Numbers as a table").click()
    rows = page.locator("figure table tbody tr")
    until(page, "document.querySelectorAll('figure table tbody tr').length > 0")
    assert rows.count() == len(words)
    assert rows.last.inner_text().split()[0] == words[-1]


def test_examples_and_two_versions_side_by_side(show):
    page = show("texts", "text").page
    example = page.locator(".examples button").nth(1)
    example.click()
    assert page.locator("#text").input_value() == example.get_attribute("title")
    page.locator("#compare").select_option("label:stable")
    until(page, "document.querySelectorAll('.answer-card:not([hidden]) li').length == 4")
    headings = page.locator(".answer-card h2").all_inner_texts()
    assert headings == ["Version 2", "stable (version 1)"]
    until(page, "document.querySelectorAll('.legend li').length >= 4")


def test_nothing_moves_while_you_type(show):
    page = show("texts", "text").page
    page.evaluate(
        "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(e => "
        "window.shift += e.value)).observe({type: 'layout-shift', buffered: false})"
    )
    page.locator("#text").press_sequentially(" and so on, and on", delay=20)
    page.wait_for_timeout(300)
    assert page.evaluate("window.shift") < 0.02


def test_a_point_is_dragged_and_a_gap_filled(show, server):
    page = show("series", "forecast").page

    def asked():
        """The present history, from the program that the Model page shows."""
        page.get_by_role("link", name="Model").click()
        page.wait_for_selector("#snippet")
        body = re.search(r"-d '(.*)'", page.locator("#snippet").inner_text())[1]
        page.get_by_role("link", name="Forecast").click()
        page.wait_for_selector("#value")
        until(page, "document.querySelector('.status').textContent")
        return json.loads(body)["inputs"]["history"][0]

    def forecast():
        if not page.locator("figure details").get_attribute("open"):
            page.get_by_text("Numbers as a table").click()
        until(page, "document.querySelectorAll('figure table tbody tr').length > 0")
        rows = page.locator("figure table tbody tr").all_inner_texts()
        return [row.split("\t")[-1] for row in rows[-HORIZON:]]

    before, first = asked(), forecast()
    page.locator("#step").fill("40")  # not the step that is chosen anyway
    page.locator("#step").press("Tab")
    page.locator(".u-over").scroll_into_view_if_needed()
    box = page.locator(".u-over").bounding_box()
    place = page.evaluate(
        "() => { const o = document.querySelector('.u-over').getBoundingClientRect();"
        "const c = document.querySelector('.u-cursor-x').getBoundingClientRect();"
        "return c.left - o.left }"
    )
    # The point lies somewhere on the cursor's line: take hold of it where the page lets go.
    for part in range(2, 100, 2):
        y = box["y"] + box["height"] * part / 100
        page.mouse.move(box["x"] + place, y)
        page.mouse.down()
        if page.locator(".chart.dragging").count():
            page.mouse.move(box["x"] + place, box["y"] + 12, steps=5)
            page.mouse.up()
            break
        page.mouse.up()
    until(page, "!document.querySelector('.chart.dragging')")
    page.wait_for_timeout(200)
    after, second = asked(), forecast()
    moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert moved == [39]
    assert second != first
    with connect(server.rest) as client:
        expected = client.predict({"history": [after]}, "series")["forecast"][0, :, 0]
    assert [float(cell.replace("−", "-")) for cell in second] == pytest.approx(expected, rel=1e-3)
    page.locator("#value").fill("")
    page.wait_for_timeout(200)
    assert "a gap" in page.locator(".fields").last.inner_text()
    page.locator("#value").fill("555")
    page.wait_for_timeout(200)
    assert asked()[page_step(page)][0] == 555


def page_step(page):
    return int(page.locator("#step").input_value()) - 1


def table(rows=LOOKBACK, names=("time", *COLUMNS), **odd):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    for i in range(rows):
        cells = {"time": f"2024-03-{1 + i // 24:02} {i % 24:02}:00"}
        cells |= {COLUMNS[0]: 500 + i, COLUMNS[1]: 20 + i / 10} | odd.get(f"row{i}", {})
        writer.writerow([cells[name] for name in names])
    return out.getvalue()


def test_a_table_in_and_the_forecast_out(show, server):
    page = show("series", "forecast").page
    # Columns go by name, whatever their order; an empty cell is a gap.
    names = ("time", COLUMNS[1], COLUMNS[0])
    page.locator("#csv").fill(table(names=names, row3={COLUMNS[0]: ""}))
    page.get_by_role("button", name="Use this table").click()
    until(page, "document.querySelector('#value').value === '547'")
    with page.expect_download() as download:
        page.get_by_role("button", name="Forecast as CSV").click()
    rows = list(csv.reader(download.value.path().read_text("utf-8").splitlines()))
    assert len(rows) == 1 + HORIZON
    assert rows[1][0] == "2024-03-03 00:00"
    history = [[500 + i if i != 3 else float("nan"), 20 + i / 10] for i in range(LOOKBACK)]
    with connect(server.rest) as client:
        answer = client.predict({"history": [history]}, "series")
    column = rows[0].index("load")
    assert [float(row[column]) for row in rows[1:]] == pytest.approx(answer["forecast"][0, :, 0])
    low = [float(row[column + 1]) for row in rows[1:]]
    assert low == pytest.approx(answer["quantiles"][0, :, 0, 0])
    page.locator("#column").fill(COLUMNS[1])
    page.locator("#column").press("Tab")
    until(page, "document.querySelector('#value').value === '24.7'")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no line"),
        (table(names=("time", COLUMNS[0])), "lacks the column"),
        (table(row5={COLUMNS[0]: HOSTILE}), "Line 7, column 2: expected a number"),
        ("time,load\n2024-01-01,1,2\n", "has 3 cells, expected 2"),
        (table(rows=5), "history"),
    ],
)
def test_errors_in_words(show, text, words):
    found = show("series", "forecast")
    found.expected = 1
    found.page.locator("#csv").fill(text)
    found.page.get_by_role("button", name="Use this table").click()
    found.page.wait_for_selector("[role=alert]:visible")
    assert words in found.page.locator("[role=alert]").inner_text()


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


def test_forty_classes_and_ten_thousand_words(show):
    found = show("topics", "text")
    page = found.page
    assert len(answers(page)) < TOPICS
    page.get_by_role("button", name=f"Show all {TOPICS} classes").click()
    assert len(answers(page)) == TOPICS
    assert "note" in page.locator(".answer-card .facts").first.inner_text()  # another output
    page.locator("#text").fill(" ".join(f"w{i % 700}" for i in range(10_000)))
    page.get_by_role("button", name="Show words and gates of this long text").click()
    until(page, "document.querySelectorAll('[data-i]').length == 10000")
    page.locator("[data-i]").nth(9_999).scroll_into_view_if_needed()
    page.locator("[data-i]").nth(9_999).hover()
    assert page.locator(".readout").first.inner_text().startswith("10000 ")
    assert page.locator(".legend li").count() <= 8
    assert found.fits()


def test_several_labels_and_estimates(show):
    page = show("several", "text").page
    page.locator("#text").fill("the refund for billing")
    until(page, "document.querySelector('.answer').textContent == 'billing, refund'")
    assert page.locator(".threshold").count() == 3
    page.locator("#text").fill("hello")
    until(page, "document.querySelector('.answer').textContent == 'no label'")
    page = show("estimate", "text").page
    page.locator("#text").fill("hello")
    until(page, "document.querySelector('.answer').textContent == '5'")
    assert "3 to 7; 4 to 6" in page.locator(".answer-card .facts").first.inner_text()


def test_a_thousand_series(show, visit, server):
    found = visit(address(server, "wide", "forecast"), f"{server.rest}/")
    page = found.page
    page.wait_for_selector("#csv")
    head = ",".join(f"series {i}" for i in range(SERIES))
    lines = [",".join(str(i + t) for i in range(SERIES)) for t in range(8)]
    page.locator("#csv").fill("\n".join([head, *lines]))
    page.get_by_role("button", name="Use this table").click()
    until(page, "document.querySelector('.status').textContent.includes('Forecast in')")
    page.locator("#column").fill("series 777")
    page.locator("#column").press("Tab")
    until(page, "document.querySelector('#value').value === '784'")
    assert found.fits()


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
