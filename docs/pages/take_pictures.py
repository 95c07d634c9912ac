"""The pictures of docs/how_to/pages.md: `python docs/pages/take_pictures.py demo_output`."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, Route, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.playground import FLAGS, playground  # noqa: E402

WIDE, PHONE = {"width": 1180, "height": 820}, {"width": 390, "height": 844}
LARGEST = 150_000  # bytes


def main(output: Path) -> None:
    """Take all pictures of the models and runs of a demo."""
    newest = {run.name.split("-")[0]: run for run in sorted((output / "runs").iterdir())}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        trace = Path(folder) / "trace.html"
        command = [sys.executable, "-m", "keras_gru", "trace", "good_movie", "--html", str(trace)]
        subprocess.run(command, cwd=ROOT, check=True)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        with playground(output / "models") as url:
            shots = {
                "text": (f"{url}#model=sentiment&view=text", _text),
                "forecast": (f"{url}#model=co2&view=forecast", _forecast),
                "model": (f"{url}#model=sentiment&view=model", _model),
                "report-text": ((newest["sentiment"] / "report.html").resolve().as_uri(), _nothing),
                "report-series": ((newest["co2"] / "report.html").resolve().as_uri(), _nothing),
                "trace": (trace.as_uri(), _trace),
            }
            for name, (address, prepare) in shots.items():
                for size, scheme in (
                    (WIDE, "light"),
                    (WIDE, "dark"),
                    (PHONE, "light"),
                    (PHONE, "dark"),
                ):
                    page = browser.new_page(viewport=size, color_scheme=scheme)
                    page.route("**/models", _somewhere)
                    page.goto(address)
                    page.wait_for_timeout(1200)
                    prepare(page)
                    page.wait_for_timeout(400)
                    kind = "wide" if size is WIDE else "narrow"
                    path = Path(__file__).parent / f"{name}-{kind}-{scheme}.png"
                    page.screenshot(path=path)
                    _shrink(path)
                    page.close()
        browser.close()


def _somewhere(route: Route) -> None:
    """The list of models as of a server that has them in /models."""
    listing = route.fetch().json()
    for model in listing["models"]:
        model["base_path"] = f"/models/{model['name']}"
    route.fulfill(json=listing)


def _nothing(page: Page) -> None:
    page.mouse.move(5, 5)


def _text(page: Page) -> None:
    page.locator(".examples button").nth(3).click()
    page.wait_for_timeout(900)
    page.locator("[data-i]").nth(6).hover()
    page.evaluate("scrollTo(0, 0)")


def _forecast(page: Page) -> None:
    page.locator("#step").fill("150")
    page.locator("#step").press("Tab")
    page.locator("#value").fill("352")
    page.wait_for_timeout(500)
    page.locator("h1").click()


def _model(page: Page) -> None:
    page.get_by_role("button", name="Ask the golden requests").click()
    page.wait_for_timeout(4500)


def _trace(page: Page) -> None:
    page.locator("td[data-name=a_g][data-step='1'][data-i='0']").hover()
    page.evaluate("scrollTo(0, 0)")


def _shrink(path: Path) -> None:
    """As few colours as look alike, to keep the repository small."""
    with Image.open(path) as picture:
        for colours in (192, 96, 48):
            picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(
                path, optimize=True
            )
            if path.stat().st_size < LARGEST:
                return
    raise SystemExit(f"{path} has {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
