"""Descriptions that no export wrote are refused, with the name of the file."""

import json

import pytest

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.description import FILE, FOLDER, FORMAT, Description


def described(*before, **changed):
    signature = {"before": before, "network": None, "after": [], "outputs": {}}
    content = {
        "format": FORMAT,
        "signatures": {"serving_default": {**signature, "rows_per_run": None}},
        "left_to_tensorflow": {},
    }
    return json.dumps({**content, **changed})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("[1, 2]", "not a table of signatures"),
        (described(format=1), "expected format 2, got 1; .* export the run again"),
        (described(signatures=None), "not a table of signatures"),
        (described({"do": "explode"}), "unknown step 'explode'"),
        (described(7), "not a table of signatures"),
        (described({"do": "take_last", "source": "x"}), "step 'take_last'"),
        (described({"do": "tokenize", "tokenizer": "deep.json"}), "deep.json: cannot be read"),
        (described({"do": "tokenize", "tokenizer": "none.json"}), "none.json: cannot be read"),
    ],
)
def test_what_no_export_wrote_is_refused(tmp_path, content, said):
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / FILE).write_text(content)
    (folder / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InvalidArgument, match=f"signatures.json: .*{said}"):
        Description.read(tmp_path)


def test_a_version_without_a_description(tmp_path):
    assert Description.read(tmp_path) is None
