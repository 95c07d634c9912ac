"""Who may ask, and how the list of tokens changes."""

import time

import pytest

from gru_serving.errors import InvalidArgument
from gru_serving.server.tokens import Tokens

OLD, NEW = "old-token-0123456789", "new-token-0123456789"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens"


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f"Bearer {OLD}", True),
        (f"bearer {NEW}", True),
        (f"Bearer  {OLD} ", True),
        (f"Bearer {OLD}".encode(), True),
        (f"Basic {OLD}", False),
        (OLD, False),
        ("Bearer", False),
        ("Bearer ", False),
        (f"Bearer {OLD[:-1]}", False),
        (f"Bearer {OLD}x", False),
        ("Bearer # a comment", False),
        ("Bearer \u2603", False),
        (b"Bearer \xff", False),
        ("", False),
    ],
)
def test_headers(path, header, allowed):
    tokens = Tokens(write(path, "# a comment", "", OLD, f"  {NEW}  "))
    assert tokens.allow(header) is allowed


def test_read_again_when_changed(path, monkeypatch):
    tokens = Tokens(write(path, OLD))
    later = time.monotonic
    monkeypatch.setattr("gru_serving.server.tokens.time.monotonic", lambda: later() + 10)
    write(path, NEW)
    assert tokens.allow(f"Bearer {NEW}")
    assert not tokens.allow(f"Bearer {OLD}")


def test_every_change_counts_and_a_broken_file_may_be_mended(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("gru_serving.server.tokens.time.monotonic", lambda: now[0])
    tokens = Tokens(write(path, OLD))
    for lines, allowed in (
        ([OLD, NEW], {OLD, NEW}),
        ([NEW], {NEW}),
        ([], {NEW}),
        ([OLD], {OLD}),
        (["x"], {OLD}),
        ([NEW, OLD], {OLD, NEW}),
    ):
        write(path, *lines)
        now[0] += 10
        assert {token for token in (OLD, NEW) if tokens.allow(f"Bearer {token}")} == allowed


@pytest.mark.parametrize("broken", ["removed", "empty", "short"])
def test_broken_file_leaves_the_tokens_in_force(path, monkeypatch, caplog, broken):
    tokens = Tokens(write(path, OLD))
    later = time.monotonic
    monkeypatch.setattr("gru_serving.server.tokens.time.monotonic", lambda: later() + 10)
    if broken == "removed":
        path.unlink()
    else:
        write(path, *([] if broken == "empty" else ["x"]))
    assert tokens.allow(f"Bearer {OLD}")
    assert not tokens.allow("Bearer x")
    assert "keeps using the previous tokens" in caplog.text


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], "holds no token; expected one per line"),
        (["# nothing"], "holds no token"),
        (["short"], "token 1 of .* must be at least 16 printable ASCII characters"),
        ([OLD, "with blanks in between"], "token 2 of"),
        (["fifteen-chars-x"], "token 1 of"),
        (["\u2603" * 16], "token 1 of"),
    ],
)
def test_refused_files(path, lines, text):
    with pytest.raises(InvalidArgument, match=text):
        Tokens(write(path, *lines))


def test_every_printable_character_may_be_in_a_token(path):
    printable = "".join(map(chr, range(0x21, 0x7F)))
    assert Tokens(write(path, "x" * 16, f"x{printable}")).allow(f"Bearer x{printable}")


def test_file_that_cannot_be_read(path):
    path.mkdir()
    with pytest.raises(InvalidArgument, match=r"^--auth_token_file: cannot read .*tokens: .*\.$"):
        Tokens(str(path))
