"""Forecasters in the playground."""

import csv
import io
import json
import re

import pytest

from gru_serving.client import connect

from .big_models import SERIES
from .conftest import until
from .hostile_names import COLUMNS, HOSTILE
from .playground_page import address

HORIZON, LOOKBACK = 12, 48
pytestmark = pytest.mark.browser


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


def test_a_forecast_is_saved_only_when_it_is_that_of_the_table(show):
    page = show("series", "forecast").page
    save = page.get_by_role("button", name="Forecast as CSV")
    until(page, "!document.querySelector('#value').disabled")
    save.click(trial=True)  # waits until it can be pressed
    held = []
    page.route("**/*:predict", lambda route: held.append(route))  # noqa: PLW0108  it is given an attribute
    page.locator("#csv").fill(table())
    page.get_by_role("button", name="Use this table").click()
    while not held:
        page.wait_for_timeout(20)
    assert save.is_disabled()
    held.pop().continue_()
    save.click(trial=True)


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
