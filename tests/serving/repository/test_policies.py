"""Which versions are wanted, which are loaded and unloaded, and in what order."""

from pathlib import Path

import pytest

from gru_serving.config.files import ServedModel, VersionPolicy
from gru_serving.errors import FailedPrecondition, NotFound
from gru_serving.repository.catalogue import ModelVersions, State, Version
from gru_serving.storage.version_scan import choose, scan, versions_on_disk


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (VersionPolicy(), {12}),
        (VersionPolicy("latest", 2), {5, 12}),
        (VersionPolicy("latest", 0), {12}),
        (VersionPolicy("all"), {-1, 5, 12}),
        (VersionPolicy("specific", versions=(5, 99)), {5}),
        (VersionPolicy("specific"), set()),
    ],
)
def test_policies(policy, expected):
    assert set(choose({5: Path(), 12: Path(), -1: Path()}, policy)) == expected


def test_scan_of_names(tmp_path, caplog):
    for name in ("00000123", "7", "007", "tmp", "1.5", "９", "99999999999999999999"):
        (tmp_path / name).mkdir()
    (tmp_path / "42").write_text("files count too")
    versions_on_disk(tmp_path)
    found = versions_on_disk(tmp_path)
    assert found == {123: tmp_path / "00000123", 7: tmp_path / "7", 42: tmp_path / "42"}
    assert caplog.text.count("both stand for version 7") == 1  # not at every scan
    with pytest.raises(NotFound, match="No such file"):
        scan(ServedModel("m", tmp_path / "nix"))


def test_numbers_of_versions_are_int64(tmp_path):
    for name in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1):
        (tmp_path / str(name)).mkdir()
    assert set(versions_on_disk(tmp_path)) == {2**63 - 1, -(2**63)}


def test_versions_asked_for_that_are_missing_are_named(tmp_path, caplog):
    (tmp_path / "5").mkdir()
    asked = ServedModel("m", tmp_path, VersionPolicy("specific", versions=(5, 99)))
    assert scan(asked) == {5: tmp_path / "5"}
    assert f"Version 99 of servable m is not under {tmp_path}" in caplog.text
    assert "Version 5 " not in caplog.text


def versions(aspired, **by_state):
    model = ModelVersions(ServedModel("m", Path("/m")), aspired={n: Path() for n in aspired})
    for state, numbers in by_state.items():
        for number in numbers:
            model.known[number] = Version(number, Path(), State[state])
    return model


@pytest.mark.parametrize(
    ("model", "unload", "load"),
    [
        (versions([2], AVAILABLE=[1], START=[2]), None, 2),
        (versions([2], AVAILABLE=[1, 2]), 1, None),
        (versions([], AVAILABLE=[1, 2]), 1, None),
        (versions([3], AVAILABLE=[1, 2], START=[3]), 1, 3),
        (versions([3, 4], AVAILABLE=[1], START=[3, 4]), None, 4),
        (versions([2], AVAILABLE=[1], END=[2]), None, None),
        (versions([2], AVAILABLE=[2], UNLOADING=[1]), None, None),
    ],
)
def test_availability_preserving_policy(model, unload, load):
    for got, expected in ((model.next_unload(), unload), (model.next_load(), load)):
        assert (got.number if got else None) == expected


def test_ended_versions_start_anew_once_they_were_gone():
    model = versions([1, 2], AVAILABLE=[1], END=[2])
    both = {1: Path(), 2: Path()}

    def found():
        return {number: version.state.name for number, version in model.known.items()}

    model.aspire(both)
    assert found() == {1: "AVAILABLE", 2: "END"}
    model.aspire({})
    unloaded = model.next_unload()
    model.aspire(both)  # too late for the version that is about to be unloaded
    unloaded.state = State.END
    assert found() == {1: "END", 2: "START"}
    model.aspire(both)
    assert found() == {1: "START", 2: "START"}


def test_used_label_may_not_move_to_an_unloaded_version():
    model = versions([1], AVAILABLE=[1])
    labelled = ServedModel("m", Path("/m"), labels={"stable": 1})
    model.check_labels(labelled.labels, allow_unavailable=False)
    model.configure(labelled)
    with pytest.raises(FailedPrecondition):
        model.check_labels({"stable": 2}, allow_unavailable=True)
    model.check_labels({"stable": 1, "next": 2}, allow_unavailable=True)
    with pytest.raises(FailedPrecondition):
        model.check_labels({"stable": 1, "next": 2}, allow_unavailable=False)
    # Applied again, as by polling, while the version is still expected.
    model.configure(ServedModel("m", Path("/m"), labels={"stable": 1, "next": 2}))
    model.check_labels({"stable": 1, "next": 2}, allow_unavailable=True)
    with pytest.raises(FailedPrecondition):
        model.check_labels({"stable": 1, "next": 3}, allow_unavailable=True)
