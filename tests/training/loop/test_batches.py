import numpy as np

from gru_training.loop.batches import LengthBucketedBatches

RNG = np.random.default_rng(0)
ROWS = [RNG.integers(1, 99, RNG.integers(1, 40)).astype(np.int32) for _ in range(403)]
TARGETS = np.arange(403, dtype=np.int32)


def batches(**options):
    return LengthBucketedBatches(ROWS, TARGETS, 16, **options)


def test_every_row_once_with_its_target_and_zeros_behind():
    seen = []
    for inputs, targets in batches(pool=5).epoch(1):
        assert inputs.shape[1] == max(len(ROWS[t]) for t in targets)
        for row, target in zip(inputs, targets, strict=True):
            length = len(ROWS[target])
            np.testing.assert_array_equal(row[:length], ROWS[target])
            assert not row[length:].any()
            seen.append(int(target))
    assert sorted(seen) == list(range(403))


def test_number_of_batches():
    source = batches()
    assert len(list(source.epoch(1))) == len(source) == 26


def test_little_padding():
    padded = sum(inputs.size for inputs, _ in batches().epoch(1))
    assert padded < 1.1 * sum(map(len, ROWS))


def test_order_follows_from_seed_and_epoch():
    def order(seed, epoch):
        return [t for _, targets in batches(seed=seed).epoch(epoch) for t in targets.tolist()]

    assert order(0, 1) == order(0, 1)
    assert order(0, 1) != order(0, 2)
    assert order(0, 1) != order(1, 1)


def test_length_order_tells_which_row_is_where():
    source = batches()
    targets = np.concatenate([targets for _, targets in source.in_length_order()])
    np.testing.assert_array_equal(targets, source.length_order())
    lengths = [len(ROWS[target]) for target in targets]
    assert lengths == sorted(lengths)
