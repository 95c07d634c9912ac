"""Names in logs: on one line, without control characters, and of limited length."""

import json
import logging

import pytest

from gru_serving.printable import printable
from gru_serving.telemetry.metrics import Counter
from gru_serving.telemetry.server_log import OneLine


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("é☃ name", "é☃ name"),
        ("a\nb\r\x1b[31m\x7f", "a\\nb\\r\\u001b[31m\\u007f"),
        ("a\u2028b\u202ec", "a\\u2028b\\u202ec"),
        ("x" * 300, "x" * 256 + "... (300 characters)"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown


def test_a_message_is_one_line_and_a_traceback_stays():
    formatter = OneLine("%(levelname).1s %(message)s")
    record = logging.LogRecord("n", logging.INFO, "p", 1, "name %s", ("a\nI forged\x1b[2J",), None)
    assert formatter.format(record) == "I name a\\nI forged\\u001b[2J"
    record = logging.LogRecord("n", logging.INFO, "p", 1, "%s", ("n" * 1_000_000,), None)
    assert len(formatter.format(record)) < 5000
    try:
        raise ValueError("here")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
        record = logging.LogRecord("n", logging.ERROR, "p", 1, "failed", (), info)
    assert formatter.format(record).splitlines()[-1] == "ValueError: here"


def test_labels_of_metrics():
    """Prometheus' parser reads the name with its escapes visible."""
    counter = Counter("c", ("m",))
    counter.add('a\x1b[31m\r\n"\\')
    (line,) = counter.lines()
    assert line == 'c{m="a\\\\u001b[31m\\\\r\\n\\"\\\\"} 1'
    # JSON has the same three escapes.
    assert json.loads(line[len("c{m=") : -len("} 1")]) == 'a\\u001b[31m\\r\n"\\'
