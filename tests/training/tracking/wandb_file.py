"""Reads what Weights & Biases keeps offline: records in the log format of LevelDB."""

from wandb.proto import wandb_internal_pb2

_BLOCK, _HEAD, _FILE_HEAD = 32768, 7, 7
_FULL, _LAST = 1, 4


def records(folder):
    """The records of the only run below a folder."""
    (path,) = folder.rglob("*.wandb")
    data, at, parts = path.read_bytes(), _FILE_HEAD, []
    assert data[:4] == b":W&B"
    while at + _HEAD <= len(data):  # the last one may be half written
        if _BLOCK - at % _BLOCK < _HEAD:  # a block's end that holds no record
            at += _BLOCK - at % _BLOCK
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if at + _HEAD + length > len(data):
            return
        parts.append(data[at + _HEAD : at + _HEAD + length])
        at += _HEAD + length
        if kind in (_FULL, _LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(b"".join(parts))
            parts = []
            yield record
