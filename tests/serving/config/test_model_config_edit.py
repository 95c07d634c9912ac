"""One model's labels and versions change; everything else in the file stays the same."""

import pytest
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from gru_serving.config.model_config_edit import (
    RolloutError,
    find_entry,
    read_config,
    retired,
    with_labels,
    write_config,
)
from gru_serving.errors import InvalidArgument

TEXT = """
# a comment
model_config_list {
  config { name: "other" base_path: "/other" model_platform: "tensorflow"
           version_labels { key: "stable" value: 1 } }
  config { name: "m" base_path: "/m" model_platform: "tensorflow"
           model_version_policy { specific { versions: 1 versions: 2 versions: 3 versions: 4 } }
           version_labels { key: "stable" value: 2 }
           version_labels { key: "canary" value: 4 } }
}
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "models.config"
    path.write_text(TEXT)
    return path


def entries(path):
    """As TF Serving's own message reads the file."""
    config = text_format.Parse(path.read_text(), ModelServerConfig())
    return {entry.name: entry for entry in config.model_config_list.config}


def test_labels_are_exactly_those_given(path):
    before = entries(path)
    config = read_config(path, "m")
    write_config(path, with_labels(config, "m", {"stable": 4, "canary": None, "next": 3}))
    after = entries(path)
    assert dict(after["m"].version_labels) == {"stable": 4, "next": 3}
    assert after["other"] == before["other"]
    after["m"].version_labels.clear()
    before["m"].version_labels.clear()
    assert after["m"] == before["m"]
    # The message that was read has not changed.
    assert dict(find_entry(config, "m").version_labels) == {"stable": 2, "canary": 4}


@pytest.mark.parametrize(
    ("below", "kept"),
    [(1, [1, 2, 3, 4]), (3, [2, 3, 4]), (4, [2, 4]), (9, [2, 4])],
)
def test_versions_without_a_label_retire(path, below, kept):
    config = read_config(path, "m")
    write_config(path, retired(config, "m", below))
    assert list(entries(path)["m"].model_version_policy.specific.versions) == kept
    assert list(find_entry(config, "m").model_version_policy.specific.versions) == [1, 2, 3, 4]


def test_where_no_versions_are_listed_none_retires(path):
    config = read_config(path, "other")
    assert retired(config, "other", 9) == config


def test_permissions_stay_and_nothing_else_is_left(path):
    path.chmod(0o640)
    write_config(path, read_config(path, "m"))
    assert path.stat().st_mode & 0o777 == 0o640
    assert [child.name for child in path.parent.iterdir()] == ["models.config"]


def test_file_that_cannot_be_replaced_is_as_it_was(path):
    config = read_config(path, "m")
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match=r"directory"):
        write_config(path, config)
    assert [child.name for child in path.parent.iterdir()] == ["models.config"]


def test_model_or_file_that_does_not_fit(path):
    with pytest.raises(RolloutError) as caught:
        read_config(path, "nix")
    assert str(caught.value) == "--model: expected one of ['other', 'm']; got 'nix'"
    path.write_text(TEXT.replace('"/other"', '"other"'))
    with pytest.raises(InvalidArgument, match="absolute path"):
        read_config(path, "m")
