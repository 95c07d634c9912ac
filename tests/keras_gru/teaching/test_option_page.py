"""docs/reference/layer_options.md agrees with the layers."""

from pathlib import Path

from keras_gru.teaching.option_page import main

PAGE = Path(__file__).parents[3] / "docs/reference/layer_options.md"


def test_page_is_what_the_layers_say(tmp_path):
    main([str(tmp_path / "page.md")])
    written = (tmp_path / "page.md").read_text("utf-8")
    assert PAGE.read_text("utf-8") == written, (
        "write it anew: python -m keras_gru.teaching.option_page docs/reference/layer_options.md"
    )
    assert "| no |" not in written
