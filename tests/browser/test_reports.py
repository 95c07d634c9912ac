"""Reports, comparisons and traces as pages, opened as files."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from keras_gru.teaching.network import ACTIVATIONS, LOSSES, parse_network
from keras_gru.teaching.trace import trace
from keras_gru.teaching.trace_report import network_content, write_trace_page

from .conftest import REPOSITORY, until
from .hostile_names import CLASSES, COLUMNS

pytestmark = pytest.mark.browser
SIZES = ({"width": 1200, "height": 900}, {"width": 360, "height": 740})


@pytest.fixture
def open_file(visit):
    def open_file(path, **options):
        return visit(path.as_uri(), path.as_uri(), **options)

    return open_file


def test_report_of_a_classifier(trained, open_file):
    page = open_file(trained["texts"] / "report.html").page
    rows = [
        json.loads(line)
        for line in (trained["texts"] / "test_predictions.jsonl").read_text().splitlines()
    ]
    wrong = [row for row in rows if row["label"] != row["predicted"]]
    said = page.locator(".explorer p.soft").first
    assert said.inner_text().startswith(f"{len(wrong)} of {len(wrong)} mistakes")
    page.locator("#mistake-label").select_option("1")
    of_label = [row for row in wrong if row["label"] == CLASSES[1]]
    assert said.inner_text().startswith(f"{len(of_label)} of")
    page.locator("#mistake-label").select_option("")
    word = (wrong or rows)[0]["text"].split()[0]
    page.locator("#mistake-text").fill(word)
    found = [row for row in wrong if word.lower() in row["text"].lower()]
    assert said.inner_text().startswith(f"{len(found)} of")
    assert page.locator(".mistakes li").count() == min(25, len(found))
    counts = [int(text.split()[0]) for text in page.locator(".matrix .cell").all_inner_texts()]
    pairs = [(row["label"], row["predicted"]) for row in rows]
    assert counts == [pairs.count((a, b)) for a in CLASSES for b in CLASSES]
    marked = json.loads((trained["texts"] / "marked_texts.json").read_text())
    assert page.locator(".marked .words").count() == len(marked)
    assert page.locator(".marked .words span").first.inner_text() == marked[0]["tokens"][0]
    # The same tables as in the Markdown.
    markdown = (trained["texts"] / "report.md").read_text()
    cells = [
        cell.strip().strip("*")
        for line in markdown.splitlines()
        if line.startswith("| GRU") or line.startswith("| **GRU")
        for cell in line.strip("|").split("|")
    ]
    assert len(cells) == 6  # with the n-grams, and alone
    shown = page.locator("main").inner_text()
    assert all(cell in shown for cell in cells)


def test_report_of_a_forecaster(trained, open_file):
    page = open_file(trained["series"] / "report.html").page
    assert page.locator("#forecast-column").input_value() == COLUMNS[0]
    page.locator("#forecast-window").focus()
    before = page.locator(".fields .soft").inner_text()
    page.keyboard.press("Home")
    assert page.locator(".fields .soft").inner_text() != before
    page.locator("#forecast-column").fill(COLUMNS[1])
    page.locator("#forecast-column").press("Tab")
    page.get_by_text("Numbers as a table").first.click()
    last = page.locator("figure details table tbody tr").last.inner_text().split("\t")
    with np.load(trained["series"] / "test_windows.npz") as windows:
        forecast = windows["forecasts"][0, -1, 1]
    assert float(last[-2].replace("−", "-")) == pytest.approx(forecast, rel=1e-3)


def test_a_table_is_sorted(trained, open_file):
    page = open_file(trained["texts"] / "report.html").page
    table = page.locator("main table").first
    for button, order in ((1, "descending"), (1, "ascending")):
        table.locator("button.sort").nth(button).click()
        assert table.locator("th").nth(button).get_attribute("aria-sort") == order
    values = [
        float(text.rstrip("%")) for text in table.locator("td:nth-child(2)").all_inner_texts()
    ]
    assert values == sorted(values)


def test_comparison_and_the_command(trained, tmp_path, open_file):
    for name in ("first", "second"):
        shutil.copytree(trained["series"], tmp_path / name)
    command = [sys.executable, "-m", "gru_training"]
    runs = [str(tmp_path / name) for name in ("first", "second")]
    subprocess.run([*command, "compare", *runs], cwd=REPOSITORY, check=True, capture_output=True)
    folder = tmp_path / "first-vs-second"
    said = subprocess.run(
        [*command, "report", str(folder)], cwd=REPOSITORY, check=True, capture_output=True
    )
    assert str(folder / "comparison.html") in said.stdout.decode()
    found = open_file(folder / "comparison.html", viewport=SIZES[1])
    assert found.fits()
    assert found.page.locator(".differences li").count() > 2
    assert "How to read this" in found.page.locator("main").inner_text()
    assert found.axe() == []


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(trained, tmp_path, open_file, scheme, size, figures):
    from keras_gru.teaching.worked_example import load_example

    example = load_example("good_movie")
    write_trace_page(example.network(), tmp_path / "trace.html", example)
    pages = [*(run / "report.html" for run in trained.values()), tmp_path / "trace.html"]
    for path in pages:
        found = open_file(path, viewport=size, color_scheme=scheme)
        for each in found.page.locator("summary").all():
            if not each.evaluate("e => e.parentElement.open"):
                each.click()
        assert found.axe() == []
        assert found.fits()
    figures(f"axe-core, {scheme}, {size['width']} pixels: no violation in {len(pages)} files")


def random_network(rng):
    """Any conventions, sizes and losses; some steps without a target."""
    steps, features, units, outputs = (int(n) for n in rng.integers(1, 5, 4))
    after = bool(rng.integers(2))
    loss = LOSSES[rng.integers(len(LOSSES))]
    targets = []
    for _ in range(steps):
        target = rng.random(outputs)
        targets.append((target / target.sum() if loss == "cross_entropy" else target).tolist())
    for t in range(steps - 1):
        if rng.random() < 0.3:
            targets[t] = None
    return parse_network(
        {
            "update_gate": ("keep", "replace")[rng.integers(2)],
            "reset_after": after,
            "activation": list(ACTIVATIONS)[rng.integers(4)],
            "recurrent_activation": list(ACTIVATIONS)[rng.integers(4)],
            "weights": {
                "kernel": rng.normal(size=(features, 3 * units)).tolist(),
                "recurrent_kernel": rng.normal(size=(units, 3 * units)).tolist(),
                "bias": rng.normal(size=(2, 3 * units) if after else (3 * units,)).tolist(),
            },
            "inputs": rng.normal(size=(steps, features)).tolist(),
            "initial_state": rng.normal(size=units).tolist(),
            "output": {
                "W": rng.normal(size=(outputs, units)).tolist(),
                "b": rng.normal(size=outputs).tolist(),
                "loss": loss,
            },
            "targets": targets,
            "reduction": ("sum", "mean")[rng.integers(2)],
            "learning_rate": float(rng.random() + 0.01),
        }
    )


def assert_same(found, expected, tolerance=1e-12):
    """Each number, within the tolerance of the largest; without activations they grow large."""
    got, want = ([*trace["steps"], trace["totals"]] for trace in (found, expected))
    assert [part.keys() for part in got] == [part.keys() for part in want]
    values = [np.abs(value).max() for part in want for value in part.values()]
    scale = max(1.0, *map(float, values))
    for computed, right in zip(got, want, strict=True):
        for name, value in right.items():
            numbers = np.asarray(computed[name], float)  # whole numbers may exceed an int64
            np.testing.assert_allclose(numbers, value, 0, tolerance * scale, err_msg=name)


def test_the_engine_equals_the_trace_in_python(visit):
    """On 200 random networks."""
    page = visit("").page
    source = (REPOSITORY / "web" / "trace" / "engine.js").read_text("utf-8")
    page.evaluate(
        "async source => { const blob = new Blob([source], {type: 'text/javascript'});"
        "window.engine = await import(URL.createObjectURL(blob)); }",
        source,
    )
    rng = np.random.default_rng(7)
    networks = [random_network(rng) for _ in range(200)]
    found = page.evaluate(
        "networks => JSON.stringify(networks.map(engine.trace))",
        [network_content(network) for network in networks],
    )
    for network, answer in zip(networks, json.loads(found), strict=True):
        assert_same(answer, trace(network).to_json())


def numbers(page):
    box = page.locator("details:has(#json)")
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    until(page, "document.querySelector('#json').textContent")
    return json.loads(page.locator("#json").inner_text())


def test_a_changed_number_computes_all_anew(tmp_path, open_file):
    from keras_gru.teaching.worked_example import load_example

    example = load_example("good_movie")
    write_trace_page(example.network(), tmp_path / "trace.html", example)
    page = open_file(tmp_path / "trace.html").page
    assert_same(numbers(page), trace(example.network()).to_json())
    fields = json.loads(json.dumps(example.content["network"]))
    changes = {"W_z[0, 1]": -0.7, "U_g[2, 0]": 1.25, "x[0, 2]": 0.5, "learning rate": 0.2}
    for label, value in changes.items():
        page.get_by_label(label, exact=True).fill(str(value))
        page.get_by_label(label, exact=True).press("Tab")
    page.locator("#update-gate").select_option("replace")
    page.locator("#reset-after").select_option("true")
    fields["weights"]["z"]["W"][1][0] = -0.7
    fields["weights"]["g"]["U"][0][2] = 1.25
    fields["inputs"][0][2] = 0.5
    fields |= {"learning_rate": 0.2, "update_gate": "replace", "reset_after": True}
    assert_same(numbers(page), trace(parse_network(fields)).to_json())
    page.get_by_role("button", name="Back to the network as given").click()
    assert_same(numbers(page), trace(example.network()).to_json())


def test_a_number_shows_its_equation_and_what_the_text_prints(tmp_path, open_file):
    from keras_gru.teaching.worked_example import load_example

    example = load_example("good_movie")
    write_trace_page(example.network(), tmp_path / "trace.html", example)
    page = open_file(tmp_path / "trace.html").page
    page.locator("td[data-name=z][data-step='0'][data-i='1']").hover()
    said = page.locator(".detail").inner_text()
    assert "equation (1)" in said
    assert "σ(0.2)" in said
    assert "The text prints 0.55 " in said
    page.locator("td[data-name=d_a_g][data-step='1'][data-i='0']").hover()
    assert "equation (10)" in page.locator(".detail").inner_text()
    page.locator("td[data-name=x][tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)  # what has been scrolled under the resting pointer is not meant
    assert "previous state[1]" in page.locator(".detail").inner_text()
    errata = page.locator(".erratum").all_inner_texts()
    assert len(errata) == len(example.errata)
    differ = sum(verdict.status == "differs" for verdict in example.verdicts)
    assert f"{differ} differ" in page.locator("main").inner_text()


def test_a_network_that_overflows(tmp_path, open_file):
    network = random_network(np.random.default_rng(0))
    write_trace_page(network, tmp_path / "trace.html")
    page = open_file(tmp_path / "trace.html").page
    page.get_by_label("W_g[0, 0]", exact=True).fill("1e308")
    page.get_by_label("W_g[0, 0]", exact=True).press("Tab")
    page.get_by_label("b_g[0]", exact=True).fill("1e308")
    page.get_by_label("b_g[0]", exact=True).press("Tab")
    assert page.locator("main").inner_text()


def test_hostile_names_in_a_trace(tmp_path, open_file):
    hostile = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
    network = random_network(np.random.default_rng(3))
    content = {**network.__dict__, "tokens": (hostile,) * len(network.inputs)}
    write_trace_page(type(network)(**content), tmp_path / "trace.html")
    page = open_file(tmp_path / "trace.html").page
    assert hostile in page.locator("main").inner_text()


def test_built_pages_are_those_of_the_sources(tmp_path):
    """`make pages` changes nothing."""
    names = (
        "serving/gru_serving/server/playground/assets", "training/gru_training/runs/report.html",
        "keras_gru/teaching/trace.html",
    )  # fmt: skip
    shutil.copytree(REPOSITORY / "web", tmp_path / "web", symlinks=True)
    subprocess.run(["node", "web/build.mjs"], cwd=tmp_path, check=True, capture_output=True)
    for name in names:
        for path in [p for p in (tmp_path / name, *(tmp_path / name).glob("*")) if p.is_file()]:
            committed = REPOSITORY / path.relative_to(tmp_path)
            assert path.read_bytes() == committed.read_bytes(), committed
