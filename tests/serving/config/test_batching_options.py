"""BatchingParameters as text, with TF Serving's defaults and errors."""

import threading

import pytest

from gru_serving.config.batching_options import (
    BatchingOptions,
    PoolOptions,
)
from gru_serving.config.cpus import schedulable_cpus
from gru_serving.config.files import read_text_proto
from gru_serving.engine.batching.scheduler import BatchScheduler
from gru_serving.errors import InvalidArgument, ResourceExhausted
from gru_serving.protos.batching_parameters_pb2 import BatchingParameters

FULL = """
max_batch_size { value: 128 }  batch_timeout_micros { value: 5 }
max_enqueued_batches { value: 1000000 }  num_batch_threads { value: 8 }
thread_pool_name { value: "x" }  allowed_batch_sizes: 1  allowed_batch_sizes: 128
pad_variable_length_inputs: true  enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 32 }
"""


def read(tmp_path, text):
    path = tmp_path / "parameters"
    path.write_text(text)
    return read_text_proto(str(path), BatchingParameters())


def test_defaults(tmp_path):
    options = BatchingOptions.from_proto(read(tmp_path, ""))
    assert options == BatchingOptions()
    assert (options.max_batch_size, options.batch_timeout_micros) == (1000, 0)
    assert (options.max_enqueued_batches, options.allowed_batch_sizes) == (10, ())
    assert not options.pad_variable_length_inputs
    assert not options.enable_large_batch_splitting
    assert options.max_execution_batch_size == 1000
    pool = PoolOptions.from_proto(read(tmp_path, ""))
    assert (pool.threads, pool.name) == (schedulable_cpus(), "batch_threads")
    assert PoolOptions().name == "model_server_batch_threads"


def test_everything_set(tmp_path):
    parameters = read(tmp_path, FULL)
    assert PoolOptions.from_proto(parameters) == PoolOptions(8, "x")
    assert BatchingOptions.from_proto(parameters) == BatchingOptions(
        128, 5, 1_000_000, (1, 128), pad_variable_length_inputs=True,
        enable_large_batch_splitting=True, max_execution_batch_size=32,
    )  # fmt: skip


def test_max_execution_size_counts_only_with_splitting(tmp_path):
    options = BatchingOptions.from_proto(read(tmp_path, "max_execution_batch_size { value: 3 }"))
    assert options.max_execution_batch_size == 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_batch_threads { value: 0 }", "num_batch_threads must be positive; was 0"),
        ("num_batch_threads { value: 100000 }",
         "num_batch_threads must be at most 1024; was 100000"),
        ("max_batch_size { value: -1 }", "input_batch_size_limit must be positive; was -1"),
        ("max_enqueued_batches { value: -1 }", "max_enqueued_batches must be positive; was -1"),
        ("max_batch_size { value: 32 } allowed_batch_sizes: 1 allowed_batch_sizes: 16",
         "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 16; "
         "expected 32"),
        ("allowed_batch_sizes: 8",
         "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 8; "
         "expected 1000"),
        ("enable_large_batch_splitting { value: true } max_batch_size { value: 12 } "
         "max_execution_batch_size { value: 4 } allowed_batch_sizes: 2 allowed_batch_sizes: 4",
         "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 4; "
         "expected 12"),
        ("max_batch_size { value: 0 } batch_timeout_micros { value: -1 } allowed_batch_sizes: 3",
         "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 3; "
         "expected 0"),
        ("max_batch_size { value: 0 }", "input_batch_size_limit must be positive; was 0"),
        ("batch_timeout_micros { value: -1 }", "batch_timeout_micros must be non-negative; was -1"),
        ("enable_large_batch_splitting { value: true } max_enqueued_batches { value: 0 }",
         "max_enqueued_batches must be positive; was 0"),
        ("enable_large_batch_splitting { value: true } max_batch_size { value: 4 } "
         "max_execution_batch_size { value: 8 }",
         "When enable_large_batch_splitting is true, input_batch_size_limit must be greater than "
         "or equal to max_execution_batch_size.148"),
    ],
)  # fmt: skip
def test_impossible_options(tmp_path, text, message):
    parameters = read(tmp_path, text)
    with pytest.raises(InvalidArgument) as caught:
        PoolOptions.from_proto(parameters), BatchingOptions.from_proto(parameters)
    assert str(caught.value) == message


@pytest.mark.parametrize(("room", "splitting"), [(0, False), (1, False), (1, True)])
def test_one_of_each_is_enough(room, splitting):
    options = BatchingOptions(1, 0, room, (1,), False, splitting, max_execution_batch_size=1)
    assert (options.max_batch_size, options.max_execution_batch_size) == (1, 1)
    assert options.max_enqueued_batches == 1
    assert PoolOptions(1).threads == 1


def test_more_threads_than_the_system_gives(monkeypatch):
    """As under `ulimit -u`; the threads that did start end again."""
    begin, begun = threading.Thread.start, []

    def start(thread):
        if len(begun) == 3:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(ResourceExhausted, match="num_batch_threads: only 3 of 9 threads"):
        BatchScheduler(PoolOptions(9))
    assert not any(thread.is_alive() for thread in begun)


@pytest.mark.parametrize(("rows", "size"), [(0, 2), (1, 2), (2, 2), (3, 8), (8, 8), (9, 9)])
def test_allowed_sizes(rows, size):
    options = BatchingOptions(max_batch_size=8, allowed_batch_sizes=(2, 8))
    assert options.executed_size(rows) == size


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((8, 8), "must be monotonically increasing"),
        ((4, 2, 4, 8), "must be monotonically increasing"),
        ((6, 4, 8), "must be monotonically increasing"),
        ((0, 8), r"must be positive; got \[0, 8\]"),
        ((-4, 2, 8), r"must be positive; got \[-4, 2, 8\]"),
    ],
)
@pytest.mark.parametrize("splitting", [False, True])
def test_sizes_that_do_not_ascend_are_refused(splitting, sizes, words):
    with pytest.raises(InvalidArgument, match=f"^allowed_batch_sizes entries {words}$"):
        BatchingOptions(8, allowed_batch_sizes=sizes, enable_large_batch_splitting=splitting)


def test_allowed_sizes_may_exceed_the_execution_size(tmp_path):
    options = BatchingOptions.from_proto(read(tmp_path, FULL))
    assert [options.executed_size(rows) for rows in (1, 2, 32)] == [1, 128, 128]
