import signal

import pytest

from gru_training.termination import check_interrupt, interrupted, remembered_interrupts


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


class InterruptedAtItsEnd:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_in_a_destructor_is_not_lost():
    with remembered_interrupts(signal.SIGINT):
        check_interrupt()
        held = InterruptedAtItsEnd()
        del held
        with pytest.raises(KeyboardInterrupt):
            check_interrupt()


def test_an_interrupt_is_raised_at_once():
    with pytest.raises(KeyboardInterrupt), remembered_interrupts(signal.SIGINT):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not interrupted()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_came_out_as_another_error_is_one_again(number):
    """TensorFlow did so with a SIGTERM while it traced: the demo ended with a traceback."""

    @remembered_interrupts(signal.SIGINT, signal.SIGTERM)
    def trace():
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise ValueError("None values not supported.") from None

    with pytest.raises(KeyboardInterrupt) as caught:
        trace()
    assert isinstance(caught.value.__cause__, ValueError)


def test_other_errors_stay_as_they_are():
    with pytest.raises(ValueError, match="units"), remembered_interrupts(signal.SIGINT):
        raise ValueError("units")


def test_an_inner_context_forgets_nothing():
    with remembered_interrupts(signal.SIGINT, signal.SIGTERM):
        with pytest.raises(KeyboardInterrupt), remembered_interrupts(signal.SIGINT):
            signal.raise_signal(signal.SIGINT)
        assert interrupted()
    assert not interrupted()


def test_a_job_in_the_background_keeps_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with remembered_interrupts(signal.SIGINT):
        signal.raise_signal(signal.SIGINT)
        check_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
