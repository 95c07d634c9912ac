import logging
import time

import pytest

from gru_serving.telemetry.server_log import still


def test_what_takes_long_is_told_again_and_again(caplog):
    caplog.set_level(logging.INFO)
    with still("loading m/1", every=0.05):
        time.sleep(0.3)
    said = [record.getMessage() for record in caplog.records]
    assert 2 <= len(said) <= 6
    assert all(line.startswith("Still loading m/1, 0 s ...") for line in said)
    time.sleep(0.1)
    assert len(caplog.records) == len(said)


def test_what_is_done_soon_or_fails_is_not(caplog):
    caplog.set_level(logging.INFO)
    with still("loading m/1"):
        pass
    with pytest.raises(ValueError, match="no"), still("loading m/1"):
        raise ValueError("no")
    assert caplog.records == []
