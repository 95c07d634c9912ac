"""The thresholds that the layer decides by, measured on the machine at hand.

    python -m benchmarks.layer.thresholds
    python -m benchmarks.layer.thresholds --only UNITS_PER_FEATURE --measure inference
    python -m benchmarks.layer.thresholds --rounds 21

Each threshold of `keras_gru/kernel/execution.py` chooses between two ways to run the same sequence.
Both are forced, at shapes around the threshold, in one process and in turn: least times of a call
by the clock, to which other processes only ever add. "Gain" is the time of the way below the
threshold over that of the way above it: the threshold should be where it crosses 1. Where it does
so on this machine is the suggestion; gains within 3 % of 1 count for neither way. Leave the machine
alone meanwhile.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

Shape = tuple[int, int, int, int]
Constants = dict[str, int]

NOISE = 0.03
"""Relative difference below which neither way is faster."""
NEVER = 1 << 62
ONE_BLOCK: Constants = {"SMALL_WORK": NEVER}
BLOCKS: Constants = {"SMALL_WORK": 0, "FEW_ROWS": 0}
SECONDS = 0.1
"""Time that a way has in a round; the least of its calls counts."""


class Threshold(NamedTuple):
    """A threshold and how to measure it.

    Attributes:
        ways: What runs below it, and what above.
        below: Constants that force the first way.
        above: Constants that force the second way.
        shapes: Shapes B,T,D,U in ascending order of the quantity.
        quantity: Function from a shape to what the threshold limits.
        unknown: Axes whose size the graph does not know.
    """

    ways: tuple[str, str]
    below: Constants
    above: Constants
    shapes: tuple[Shape, ...]
    quantity: Callable[[Shape], float]
    unknown: tuple[int, ...] = ()


def _elementwise() -> int:
    from keras_gru.kernel.execution import ELEMENTWISE

    return ELEMENTWISE


THRESHOLDS = {
    "SMALL_WORK": Threshold(
        ("one block", "a block per core"),
        ONE_BLOCK,
        BLOCKS,
        tuple((b, 50, 32, 64) for b in (4, 16, 32, 64, 128)),
        lambda s: s[0] * s[1] * s[3] * (s[3] + _elementwise()),
    ),
    "TYPICAL_STEPS": Threshold(
        ("one block", "a block per core"),
        ONE_BLOCK,
        BLOCKS,
        tuple((16, t, 32, 64) for t in (25, 50, 100, 200, 400)),
        lambda s: s[1],
        (1,),
    ),
    "MANY_UNITS": Threshold(
        ("a block per core", "one block"),
        BLOCKS,
        ONE_BLOCK,
        tuple((4, 50, 32, u) for u in (128, 256, 384, 512, 768)),
        lambda s: s[3],
    ),
    "FEW_ROWS": Threshold(
        ("one block", "a block per core"),
        ONE_BLOCK,
        BLOCKS,
        tuple((b, 50, 32, 512) for b in (2, 4, 6, 8, 16)),
        lambda s: s[0],
    ),
    "MOST_FEW_ROWS": Threshold(
        ("filled up to 16 rows", "filled up to the next size"),
        {"SMALL_WORK": 1 << 24, "MOST_FEW_ROWS": 16},
        {"SMALL_WORK": 1 << 24, "MOST_FEW_ROWS": 2},
        tuple((b, 100, 32, 64) for b in (4, 8, 12, 16)),
        lambda s: s[0],
        (0,),
    ),
    "UNITS_PER_FEATURE": Threshold(
        ("inputs projected before the loop", "in the loop"),
        {**BLOCKS, "UNITS_PER_FEATURE": NEVER, "FEW_FEATURES": 0, "MAX_RECALLED_WORK": 0},
        {**BLOCKS, "UNITS_PER_FEATURE": 0, "MAX_RECALLED_WORK": 0},
        tuple((16, 200, d, 128) for d in (64, 32, 16, 8, 4)),
        lambda s: s[3] / s[2],
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table and a suggestion per threshold; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.layer.thresholds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=tuple(THRESHOLDS), default=list(THRESHOLDS))
    parser.add_argument("--measure", nargs="+", choices=("inference", "training"),
                        default=["inference", "training"])  # fmt: skip
    parser.add_argument("--rounds", type=int, default=11, help="turns of each way")
    arguments = parser.parse_args(argv)
    from keras_gru.kernel import execution

    for name in arguments.only:
        threshold = THRESHOLDS[name]
        for measure in arguments.measure:
            print(f"\n{name}, {measure}: {threshold.ways[0]}, or {threshold.ways[1]}\n")
            print("| B,T,D,U | quantity | below (ms) | above (ms) | gain |")
            print("|---|---:|---:|---:|---:|", flush=True)
            gains = []
            for shape in threshold.shapes:
                below, above = _both_ways(threshold, shape, measure, arguments.rounds)
                gains.append((threshold.quantity(shape), below / above))
                sizes = ",".join(map(str, shape))
                print(
                    f"| {sizes} | {gains[-1][0]:.4g} | {below * 1e3:.3f} | {above * 1e3:.3f} "
                    f"| {gains[-1][1]:.2f} |",
                    flush=True,
                )
            print(f"\n{name} is {getattr(execution, name)}; {suggestion(gains)}", flush=True)
    return 0


def suggestion(gains: Sequence[tuple[float, float]]) -> str:
    """Say where the gains of ascending quantities cross 1.

    Args:
        gains: Quantity, and time of the way below over that of the way above.
    """
    lost = [quantity for quantity, gain in gains if gain < 1 - NOISE]
    won = [quantity for quantity, gain in gains if gain > 1 + NOISE]
    if not lost and not won:
        return "here both ways take the same time at all of these shapes."
    if not lost:
        return f"here at most {won[0]:.4g}: the way above is never slower."
    if not won:
        return f"here more than {lost[-1]:.4g}: the way above is never faster."
    if lost[-1] > won[0]:
        return f"here neither way is faster throughout, between {won[0]:.4g} and {lost[-1]:.4g}."
    return f"here about {math.sqrt(lost[-1] * won[0]):.4g}, from {lost[-1]:.4g} to {won[0]:.4g}."


def _both_ways(
    threshold: Threshold, shape: Shape, measure: str, rounds: int
) -> tuple[float, float]:
    """Measure both ways in turn: least seconds of a call."""
    calls = []
    for constants in (threshold.below, threshold.above):
        with _forced(constants):
            calls.append(_call(shape, measure, threshold.unknown))
    least = [math.inf, math.inf]
    for turn in range(rounds):
        for way in (0, 1)[:: -1 if turn % 2 else 1]:
            least[way] = min(least[way], _seconds(calls[way]))
    return least[0], least[1]


@contextmanager
def _forced(constants: Constants) -> Iterator[None]:
    """Set constants of the rule while a graph is traced; all lengths stay as they are."""
    from keras_gru.kernel import execution

    forced = {"EXACT_LENGTHS": NEVER, **constants}
    before = {name: getattr(execution, name) for name in forced}
    try:
        for name, value in forced.items():
            setattr(execution, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(execution, name, value)


def _call(shape: Shape, measure: str, unknown: tuple[int, ...]) -> Callable[[], Any]:
    """Make a call of a new layer on random inputs, traced and compiled."""
    import tensorflow as tf

    import keras_gru

    rows, steps, features, units = shape
    layer = keras_gru.GRU(units)
    layer.build((None, None, features))
    known = [None if axis in unknown else size for axis, size in enumerate((rows, steps))]

    def run(inputs: Any) -> Any:
        if measure == "inference":
            return layer(inputs)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(inputs, training=True)))
        return tape.gradient(loss, layer.trainable_weights)

    traced = tf.function(run, input_signature=[tf.TensorSpec([*known, features])], autograph=False)
    inputs = tf.random.stateless_normal((rows, steps, features), (0, 1))
    traced(inputs)
    return lambda: traced(inputs)


def _seconds(call: Callable[[], Any]) -> float:
    """Call for `SECONDS`, after one call untimed; least seconds of a call."""
    call()
    least, begin = math.inf, time.perf_counter()
    while (before := time.perf_counter()) < begin + SECONDS:
        call()
        least = min(least, time.perf_counter() - before)
    return least


if __name__ == "__main__":
    sys.exit(main())
