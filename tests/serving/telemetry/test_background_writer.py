"""Writing in the background: order, loss, end."""

import threading

from gru_serving.telemetry import background_writer
from gru_serving.telemetry.background_writer import BackgroundWriter
from tests.waiting import wait_until


def test_all_are_written_in_order():
    written = []
    writer = BackgroundWriter("t", written.extend, at_once=3)
    for i in range(100):
        writer.put(i)
    writer.close()
    assert written == list(range(100))
    assert writer.dropped == 0


def test_put_does_not_wait_and_what_is_too_much_is_dropped(caplog):
    began, go, written = threading.Event(), threading.Event(), []

    def slowly(items):
        began.set()
        go.wait(60)
        written.extend(items)

    writer = BackgroundWriter("the log", slowly, limit=5)
    writer.put(0)
    assert began.wait(60)
    for i in range(1, 100):
        writer.put(i)
    assert writer.dropped == 94
    go.set()
    writer.close()
    assert written == [0, 1, 2, 3, 4, 5]
    assert "the log: 1 entry lost so far: it is written too slowly" in caplog.text
    assert "the log: 94 entries lost so far: it is written too slowly" in caplog.text
    assert caplog.text.count("lost so far") == 2


def test_bytes_count(caplog):
    began, go, written = threading.Event(), threading.Event(), []

    def slowly(items):
        began.set()
        go.wait(60)
        written.extend(items)

    writer = BackgroundWriter("t", slowly, limit_bytes=100)
    writer.put("first")
    assert began.wait(60)
    writer.put("larger than all", 1000)
    writer.put("beside it", 1)
    assert writer.dropped == 1
    go.set()
    wait_until(lambda: len(written) == 2)
    for i in range(3):
        writer.put(i, 100)
        wait_until(lambda i=i: written[-1] == i)
    writer.close()
    assert written == ["first", "larger than all", 0, 1, 2]


def test_losses_are_said_whole_after_a_while(caplog, monkeypatch):
    monkeypatch.setattr(background_writer, "_REPEAT_SECONDS", 0.5)

    def full(items):
        raise OSError("disk full")

    writer = BackgroundWriter("t", full, at_once=1)
    for i in range(791):
        writer.put(i)
    wait_until(lambda: "791 entries lost so far: disk full" in caplog.text)
    writer.close()


def test_failure_loses_only_what_it_concerns(caplog):
    written = []

    def picky(items):
        if items == [3]:
            raise OSError("disk full")
        written.extend(items)

    writer = BackgroundWriter("t", picky, at_once=1)
    for i in range(6):
        writer.put(i)
    writer.close()
    assert written == [0, 1, 2, 4, 5]
    assert writer.dropped == 1
    assert "disk full" in caplog.text
    writer.put(9)
    assert writer.dropped == 2
