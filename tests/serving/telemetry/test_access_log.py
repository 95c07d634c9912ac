"""Lines of the access log, and log files that disappear or cannot grow."""

import json

import orjson

from gru_serving.telemetry.access_log import AccessLog
from gru_serving.telemetry.request_record import RequestRecord
from tests.serving.full_disk import largest_file
from tests.waiting import wait_until


def record(**fields):
    made = RequestRecord("REST", "POST", **fields)
    made.end(())
    return made


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_line(tmp_path):
    path = tmp_path / "log"
    log = AccessLog(str(path))
    log(
        record(
            target=b'/v1/models/"m"\n:predict',
            model="m",
            version=3,
            signature="s",
            peer=("1.2.3.4", 5),
            http_status=200,
            request_bytes=7,
            response_bytes=9,
            began=1234567890.25,
            request_id="asked-1",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
    )
    log(RequestRecord("GRPC", "/s/M", status="NOT_FOUND"))
    log.close()
    first, second = lines(path)
    assert first.pop("seconds") >= 0
    assert first == {
        "time": "2009-02-13T23:31:30.250000Z",
        "transport": "REST",
        "method": "POST",
        "route": '/v1/models/"m"\n:predict',
        "model": "m",
        "version": 3,
        "signature": "s",
        "status": "OK",
        "http_status": 200,
        "request_bytes": 7,
        "response_bytes": 9,
        "client": "1.2.3.4:5",
        "request_id": "asked-1",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }
    assert second["status"] == "NOT_FOUND"
    assert "version" not in second


def test_names_that_are_not_utf8_leave_lines_that_strict_parsers_read(tmp_path):
    path = tmp_path / "log"
    log = AccessLog(str(path))
    log(
        record(
            model=b"m\xff".decode("utf-8", "surrogateescape"),
            signature="\ud800",
            target="ü".encode(),
        )
    )
    log.close()
    (line,) = path.read_bytes().splitlines()
    read = orjson.loads(line)
    assert (read["model"], read["signature"], read["route"]) == ("m?", "?", "ü")


def test_appends_and_follows_rotation(tmp_path):
    path = tmp_path / "log"
    path.write_text("{}\n")
    log = AccessLog(str(path))
    log(record(model="a"))
    wait_until(lambda: len(lines(path)) == 2)
    path.rename(tmp_path / "log.1")
    log(record(model="b"))
    log.close()
    assert [one.get("model") for one in lines(tmp_path / "log.1")] == [None, "a"]
    assert [one["model"] for one in lines(path)] == ["b"]


def test_stdout(capfd):
    log = AccessLog("-")
    log(record(model="a"))
    log.close()
    assert json.loads(capfd.readouterr().out)["model"] == "a"


def test_full_disk_does_not_stop_it(tmp_path, caplog):
    log = AccessLog("/dev/full")
    for _ in range(3):
        log(record(model="a"))
    log.close()
    assert "access log: " in caplog.text
    assert "No space left on device" in caplog.text


def test_line_that_did_not_fit_leaves_no_half(tmp_path, caplog):
    path = tmp_path / "log"
    log = AccessLog(str(path))
    log(record(model="a"))
    wait_until(lambda: path.stat().st_size)
    with largest_file(path.stat().st_size + 20):
        log(record(model="too long"))
        wait_until(lambda: "1 entry lost so far" in caplog.text)
    log(record(model="b"))
    log.close()
    assert [one["model"] for one in lines(path)] == ["a", "b"]
