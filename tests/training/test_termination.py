import signal

import pytest

from training.termination import remembered_interrupt


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


class InterruptedAtItsEnd:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_a_destructor_is_not_lost():
    with remembered_interrupt() as check:
        check()
        held = InterruptedAtItsEnd()
        del held
        with pytest.raises(KeyboardInterrupt):
            check()


def test_an_interrupt_is_raised_at_once():
    with remembered_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_job_in_the_background_keeps_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with remembered_interrupt() as check:
        signal.raise_signal(signal.SIGINT)
        check()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
