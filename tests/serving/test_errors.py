"""Codes and classes of errors."""

import grpc
import pytest

from gru_serving import errors


def test_numbers_are_those_of_grpc():
    assert {code.name: code.value for code in errors.Code} == {
        code.name: code.value[0] for code in grpc.StatusCode
    }


@pytest.mark.parametrize("code", [code for code in errors.Code if code is not errors.Code.OK])
def test_from_code_keeps_code_and_text(code):
    error = errors.from_code(code.value, "why")
    assert error.code is code
    assert str(error) == "why"
    assert error.status == f"{code.name}: why"


def test_from_code_chooses_the_class():
    assert type(errors.from_code(14, "x")) is errors.Unavailable
    assert errors.from_code(99, "x").code is errors.Code.UNKNOWN


def test_abort_does_not_leak_into_the_class():
    errors.from_code(10, "x")
    assert errors.ServingError("y").code is errors.Code.UNKNOWN


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "no more memory"),
        (RuntimeError("can't start new thread"), "started no more threads"),
        (RuntimeError("another fault"), None),
        (errors.InvalidArgument("can't start new thread"), None),
    ],
)
def test_what_the_system_refuses(error, words):
    refusal = errors.refused_by_system(error)
    assert (refusal is None) == (words is None)
    if words:
        assert refusal.code is errors.Code.RESOURCE_EXHAUSTED
        assert words in refusal.message
