"""Text classifiers in the playground."""

import re

import pytest

from gru_serving.client import connect

from .big_models import TOPICS
from .conftest import until
from .hostile_names import CLASSES
from .playground_page import answers

pytestmark = pytest.mark.browser


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
    # What the first answer moved is painted before the first key.
    page.wait_for_load_state("networkidle")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.evaluate(
        "window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(e => "
        "window.shift += e.value)).observe({type: 'layout-shift', buffered: false})"
    )
    page.locator("#text").press_sequentially(" and so on, and on", delay=20)
    page.wait_for_timeout(300)
    assert page.evaluate("window.shift") < 0.02


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
