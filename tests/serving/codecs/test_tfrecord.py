"""TFRecord files, against TensorFlow's own reader and writer."""

import pytest
import tensorflow as tf

from gru_serving.codecs.tfrecord import CorruptRecordError, framed, read_records
from gru_serving.errors import without_node_names

RECORDS = [b"first", b"", b"third" * 300]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "records"
    path.write_bytes(b"".join(map(framed, RECORDS)))
    return path


def test_tensorflow_reads_what_is_written(path):
    assert list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()) == RECORDS


def test_what_tensorflow_writes_is_read(path):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in RECORDS:
            writer.write(record)
    assert path.read_bytes() == b"".join(map(framed, RECORDS))
    assert list(read_records(path)) == RECORDS


def outcome(read):
    """The records until the error, and its text."""
    records = []
    try:
        records.extend(iter(read()))
    except (CorruptRecordError, tf.errors.OpError) as error:
        message = error.message if isinstance(error, tf.errors.OpError) else str(error)
        return records, without_node_names(message)
    return records, None


def both(path):
    by_tensorflow = outcome(lambda: tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    return by_tensorflow, outcome(lambda: read_records(path))


@pytest.mark.parametrize("size", [1, 8, 11, 12, 14, 20, 21, 30, 37, 40, 60])
def test_cut_files(path, size):
    path.write_bytes(path.read_bytes()[:size])
    wanted, got = both(path)
    assert got[1] == wanted[1]


@pytest.mark.parametrize("place", [0, 9, 13, 18, 21, 33, 36, 45])
def test_altered_files(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    wanted, got = both(path)
    assert got[1] == wanted[1]
