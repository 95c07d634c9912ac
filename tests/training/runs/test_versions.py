"""What docs/support.md promises of runs that another version wrote."""

from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from gru_training.errors import RunDirectoryError
from gru_training.runs import directory
from gru_training.runs.directory import read_config

SOURCE = Path("runs/old/config.json")


@dataclass(frozen=True)
class Settings:
    rows: int
    rate: float = 0.5


@pytest.fixture
def read(monkeypatch):
    """Reads settings that one version wrote with another."""

    def call(written_by, read_by, **values):
        monkeypatch.setattr(directory, "package_version", lambda: read_by)
        content = {"task": "toy", "keras_gru": written_by, **values}
        return read_config(content, {"toy": Settings}, SOURCE)

    return call


@pytest.mark.parametrize("read_by", ["0.1.0", "0.1.7", "0.2.0", "0.12.3"])
def test_later_versions_read_it_and_complete_it(read, read_by):
    """Settings that came later have their defaults."""
    assert asdict(read("0.1.0", read_by, rows=3)) == {"rows": 3, "rate": 0.5}


@pytest.mark.parametrize(("written_by", "read_by"), [("0.9.0", "1.0.0"), ("2.0.0", "1.4.0")])
def test_another_first_number_is_refused(read, written_by, read_by):
    with pytest.raises(RunDirectoryError) as caught:
        read(written_by, read_by, rows=3)
    said = str(caught.value)
    assert said.startswith(f"{SOURCE}: expected a run of the major version of keras_gru {read_by}")
    assert f"got one of {written_by}" in said


def test_a_setting_of_a_later_version_is_named(read):
    with pytest.raises(RunDirectoryError, match=r"^runs/old/config.json: .* no field 'momentum'"):
        read("0.3.0", "0.2.0", rows=3, momentum=0.9)
