"""Time from a key press to the answer in the playground: `python -m benchmarks.playground MODELS`.

Chromium types into the page that a real server serves on loopback. Each time is from the key's own
time stamp to the moment when the answer is in the page, as the browser measures it.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TEXT = "The script is not funny, but the ending is wonderful and I would see it again. "


def main() -> int:
    """Measure, and print the quantiles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, help="such as demo_output/models")
    parser.add_argument("--model", default="sentiment", help="(default: %(default)s)")
    parser.add_argument("--keys", type=int, default=300, help="(default: %(default)s)")
    arguments = parser.parse_args()
    with playground(arguments.models) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        page = browser.new_page(bypass_csp=True)  # waiting evaluates a string in the page
        page.goto(f"{url}#model={arguments.model}&view=text")
        page.wait_for_function("document.querySelector('.status')?.textContent")
        field = page.locator("#text")
        field.fill("")
        for i in range(arguments.keys + 20):
            if i % len(TEXT) == 0:
                field.fill("")
            field.press_sequentially(TEXT[i % len(TEXT)])
            page.wait_for_timeout(60)  # a fast typist: 16 keys per second
        times = page.evaluate(
            "performance.getEntriesByName('key to answer').map(entry => entry.duration)"
        )
        browser.close()
    times = times[-arguments.keys :]
    cuts = statistics.quantiles(times, n=100)
    print(
        f"{len(times)} keys: p50 {cuts[49]:.1f} ms, p95 {cuts[94]:.1f} ms, p99 {cuts[98]:.1f} ms "
        "from the key to the answer in the page"
    )
    return 0


@contextmanager
def playground(models: Path) -> Iterator[str]:
    """The address of the playground of these models."""
    command = [sys.executable, "-m", "gru_serving", "playground", str(models), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            for line in server.stdout or ():
                if found := re.search(r"Playground: (\S+)", line):
                    yield found[1]
                    return
            raise SystemExit("the server ended before it served")
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
