"""docs/reference/layer_options.md agrees with the layers."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
TOOL = runpy.run_path(str(ROOT / "docs/sphinx/option_page.py"))


def test_page_is_what_the_layers_say():
    written = TOOL["page"]()
    assert (ROOT / "docs/reference/layer_options.md").read_text("utf-8") == written, (
        "write it anew: python docs/sphinx/option_page.py docs/reference/layer_options.md"
    )
    assert "| no |" not in written
