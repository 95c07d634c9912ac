"""Refusals have one code and one text: over gRPC, over REST, and as errors of the client."""

import pytest

from gru_serving.client import connect
from gru_serving.errors import InvalidArgument, NotFound, ServingError
from tests.serving.conformance.refusals import REFUSALS
from tests.serving.messages import refused
from tests.serving.raw_http import rest

HTTP_STATUS = {"INVALID_ARGUMENT": 400, "NOT_FOUND": 404}
ERRORS = {"INVALID_ARGUMENT": InvalidArgument, "NOT_FOUND": NotFound}


def of(form):
    """The refusals of requests that can be made in this form."""
    named = [name for name, refusal in REFUSALS.items() if getattr(refusal, form)]
    return pytest.mark.parametrize("name", named)


def over_grpc(refusal, stub, models_stub):
    method, message = refusal.grpc
    stub = models_stub if method == "GetModelStatus" else stub
    return refused(getattr(stub, method), message)


def as_told(text, wanted):
    return text.startswith(wanted[:-3]) if wanted.endswith("...") else text == wanted


@of("grpc")
def test_over_grpc(stub, models_stub, name):
    refusal = REFUSALS[name]
    code, text = over_grpc(refusal, stub, models_stub)
    assert code == refusal.code
    assert as_told(text, refusal.text), text


@of("rest")
def test_over_rest(server, stub, models_stub, name):
    refusal = REFUSALS[name]
    http_status, answer = rest(server, *refusal.rest)
    assert http_status == HTTP_STATUS[refusal.code]
    assert answer.keys() == {"error"}
    assert as_told(answer["error"], refusal.text), answer
    if refusal.grpc:
        assert over_grpc(refusal, stub, models_stub)[1] == answer["error"]


@pytest.mark.parametrize("transport", ["rest", "grpc"])
@of("client")
def test_by_the_client(server, name, transport):
    refusal = REFUSALS[name]
    with connect(getattr(server, transport)) as client, pytest.raises(ServingError) as caught:
        refusal.client(client)
    assert type(caught.value) is ERRORS[refusal.code]
    assert (caught.value.code.name, caught.value.message) == (refusal.code, refusal.text)
