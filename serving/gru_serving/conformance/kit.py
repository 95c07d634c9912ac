"""The kit: every case is asked, and every answer gets a verdict."""

import gzip
import json
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gru_serving.conformance.case import Case, read_cases
from gru_serving.conformance.differences import difference, fits, shown
from gru_serving.conformance.scenarios import SCENARIOS, NotOfferedError, Scenario
from gru_serving.conformance.server import GrpcAnswer, HttpAnswer, Server

SAME, DOCUMENTED, DEVIATES, NOT_OFFERED = (
    *("same", "deviates (documented)", "deviates", "not offered"),
)
_SECONDS_FOR_A_CHANGE = 60.0
"""Seconds within which a server serves a new model; some try it in a process of its own first."""
CONFIG = Path(__file__).with_name("models.config")
"""What a server of the kit's models is configured with: `$models` is their folder."""
VERDICTS = (SAME, DOCUMENTED, DEVIATES, NOT_OFFERED)
DEVIATIONS = Path(__file__).with_name("deviations.toml")
"""The documented deviations of this project's server."""
HTTP_STATUS = {
    "OK": 200, "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404, "ALREADY_EXISTS": 409,
    "ABORTED": 409, "RESOURCE_EXHAUSTED": 429, "CANCELLED": 499, "UNKNOWN": 500, "INTERNAL": 500,
    "DATA_LOSS": 500, "UNIMPLEMENTED": 501, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
}  # fmt: skip
"""`ToHTTPStatusCode` of TF Serving's `model_servers/http_server.cc`."""


@dataclass(frozen=True)
class Outcome:
    """A server's answer to a case, and the verdict.

    Attributes:
        case: Case or scenario.
        verdict: One of `VERDICTS`.
        said: Answer of the server, on one line.
        reason: Difference from TF Serving's answer, or why the case was not offered.
        seconds: Seconds that the case took.
    """

    case: Case | Scenario
    verdict: str
    said: str
    reason: str = ""
    seconds: float = 0.0


def all_cases() -> list[Case | Scenario]:
    """Return all cases, those that change what the server serves last."""
    return [*read_cases(), *SCENARIOS]


def ask(
    server: Server,
    cases: Iterable[Case | Scenario],
    deviations: Mapping[str, str],
    told: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Ask a server all cases.

    Args:
        server: Server to ask.
        cases: Cases and scenarios.
        deviations: Reason of each documented deviation, by the name of the case.
        told: Function that is given every outcome as it comes.
    """
    outcomes = []
    for case in cases:
        begun = time.monotonic()
        verdict, said, reason = _judged(server, case)
        if verdict == DEVIATES and (why := _documented(case.name, deviations)):
            verdict, reason = DOCUMENTED, f"{why} ({reason})"
        if server.models is not None:
            said, reason = (text.replace(server.models, "$models") for text in (said, reason))
        outcome = Outcome(case, verdict, said, reason, time.monotonic() - begun)
        told(outcome)
        outcomes.append(outcome)
    return outcomes


def read_deviations(path: Path) -> dict[str, str]:
    """Read documented deviations: tables `deviations...` of patterns of names, with the reasons.

    Args:
        path: TOML file.

    Raises:
        ValueError: The file has no such table.
    """
    content = tomllib.loads(path.read_text("utf-8"))
    tables = [table for name, table in content.items() if name.startswith("deviations")]
    found = {
        name: why for table in tables if isinstance(table, dict) for name, why in table.items()
    }
    if not tables or not all(isinstance(why, str) for why in found.values()):
        raise ValueError(
            f"{path}: expected a table [deviations] of case names with the reason of each, such as "
            '"unknown model (rest)" = "answers 410"'
        )
    return found


def as_record(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the outcomes as JSON that two servers can be compared by: no times, no addresses."""
    rows = sorted(outcomes, key=lambda outcome: outcome.case.name)
    return {
        "verdicts": {
            verdict: Counter(row.verdict for row in rows)[verdict] for verdict in VERDICTS
        },
        "cases": {
            row.case.name: {"verdict": row.verdict, "said": row.said, "reason": row.reason}
            for row in rows
        },
    }


def counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Count the cases of each verdict."""
    found = Counter(outcome.verdict for outcome in outcomes)
    return {verdict: found[verdict] for verdict in VERDICTS}


def _documented(name: str, deviations: Mapping[str, str]) -> str | None:
    return next((why for pattern, why in deviations.items() if fits(pattern, name)), None)


def _judged(server: Server, case: Case | Scenario) -> tuple[str, str, str]:
    if not server.speaks(case.transport):
        return NOT_OFFERED, "", f"--{case.transport} was not given"
    if isinstance(case, Scenario):
        try:
            reason, said = case.run(server)
        except NotOfferedError as error:
            return NOT_OFFERED, "", str(error)
        return (DEVIATES, said, reason) if reason else (SAME, said, "")
    if "steps" not in case.wants:
        return _verdict(*_asked(server, case.wants, case.transport))
    if server.models is None and "$models" in json.dumps(case.wants):
        return NOT_OFFERED, "", "--models was not given"
    try:
        found = (SAME, "", "")
        for step in _with_models(case.wants["steps"], server.models):
            found = _verdict(*_step(server, step))
            if found[0] != SAME:
                break
        return found
    finally:
        if case.wants.get("restore"):
            _restore(server)


def _step(server: Server, wants: dict[str, Any]) -> tuple[str | None, HttpAnswer | GrpcAnswer]:
    """Take one step; one that is to fit eventually is repeated until it does."""
    transport = "rest" if "rest" in wants else "grpc"
    until = time.monotonic() + _SECONDS_FOR_A_CHANGE
    while True:
        reason, answer = _asked(server, wants, transport)
        if not reason or not wants.get("eventually") or time.monotonic() > until:
            return reason, answer
        time.sleep(0.1)


def _with_models(value: Any, models: str | None) -> Any:
    return json.loads(json.dumps(value).replace("$models", json.dumps(models or "")[1:-1]))


def _restore(server: Server) -> None:
    """Send the first configuration again, and wait until all of it is served."""
    config = CONFIG.read_text("utf-8").replace("$models", server.models or "")
    server.grpc("HandleReloadConfigRequest", f"config {{ {config} }}", _SECONDS_FOR_A_CHANGE)
    for name, version in (("affine", 1), ("affine", 3), ("batched", 1), ("half_plus_two", 1)):
        wanted = f"model_version_status {{ version: {version} state: AVAILABLE status {{}} }}"
        request = f'model_spec {{ name: "{name}" version {{ value: {version} }} }}'
        step = {"grpc": "GetModelStatus", "request": request, "answer": wanted, "eventually": True}
        _step(server, step)


def _asked(
    server: Server, wants: dict[str, Any], transport: str
) -> tuple[str | None, HttpAnswer | GrpcAnswer]:
    if transport == "rest":
        http = server.rest(*_http_request(wants))
        return _http_difference(wants, http), http
    seconds = _SECONDS_FOR_A_CHANGE if wants["grpc"] == "HandleReloadConfigRequest" else None
    answer = server.grpc(wants["grpc"], wants["request"], wants.get("timeout", seconds))
    return _grpc_difference(server, wants, answer), answer


def _verdict(reason: str | None, answer: HttpAnswer | GrpcAnswer) -> tuple[str, str, str]:
    if reason and answer.missing_method:
        return NOT_OFFERED, answer.said, "the server has no such method"
    return (DEVIATES, answer.said, reason) if reason else (SAME, answer.said, "")


def _http_request(wants: dict[str, Any]) -> tuple[str, str, bytes | None, dict[str, str], int]:
    method, _, path = wants["rest"].partition(" ")
    headers = dict(wants.get("headers", {}))
    text = None if method in ("GET", "HEAD") else wants.get("body")
    body = None if text is None else text.encode()
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    headers = {name: value for name, value in headers.items() if value}
    encoding = wants.get("encoding", "")
    if body is not None and "gzip" in encoding:
        body = gzip.compress(body)
        if encoding == "gzip, cut":
            body = body[:-9]
        elif encoding == "gzip, twice":
            body += body
        headers.setdefault("Content-Encoding", "gzip")
    return method, path, body, headers, 3 if encoding == "chunked" else 0


def _http_difference(wants: dict[str, Any], answer: HttpAnswer) -> str | None:
    """Name the first difference of an answer over REST: status, headers, then the body."""
    if answer.failure:
        return answer.failure
    code, _, text = wants.get("error", "OK: ").partition(": ")
    status = int(wants.get("status", HTTP_STATUS[code]))
    if answer.status != status:
        return f"status: expected {status}; got {answer.status}"
    kind = {"content-type": "application/json"} if "json" in wants or "error" in wants else {}
    for name, pattern in {**kind, **wants.get("answered", {})}.items():
        got = answer.headers.get(name, "")
        if not fits(pattern, got):
            return f"header {name}: expected {pattern or 'none'}; got {got or 'none'}"
    if "text" in wants and not fits(wants["text"], answer.body.decode(errors="replace")):
        body = shown(answer.body.decode(errors="replace"))
        return f"body: expected {shown(wants['text'])}; got {body}"
    if "json" not in wants and "error" not in wants:
        return None
    try:
        got_json = answer.json()
    except ValueError as error:
        return str(error)
    if "error" in wants:
        if not isinstance(got_json, dict) or list(got_json) != ["error"]:
            return f"body: expected the field 'error' alone; got {shown(got_json)}"
        return _text_difference(text, got_json["error"])
    return difference(json.loads(wants["json"]), got_json, "contains" in wants)


def _grpc_difference(server: Server, wants: dict[str, Any], answer: GrpcAnswer) -> str | None:
    """Name the first difference of an answer over gRPC: code, then text or message."""
    code, _, text = wants.get("error", "OK: ").partition(": ")
    if answer.code != code:
        return f"code: expected {code}; got {answer.said}"
    if code != "OK":
        return _text_difference(text, answer.text)
    if answer.message is None:
        return f"message: got {answer.text}"
    wanted = server.expected(wants["grpc"], wants["answer"])
    return difference(wanted, answer.json(), "contains" in wants)


def _text_difference(pattern: str, text: Any) -> str | None:
    if isinstance(text, str) and fits(pattern, text):
        return None
    return f"text: expected {shown(pattern)}; got {shown(text)}"
