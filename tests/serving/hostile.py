"""Requests that nobody should send: seeded, so that a failing one can be made again by its number.

What hostile REST and gRPC requests have in common; `hostile_http` and `hostile_calls` make them.
"""

import os

FULL = os.environ.get("KERAS_GRU_ROBUSTNESS") == "full"


def inputs(quick, full):
    """How many inputs to try: a few in the ordinary test run, many in `make robustness`."""
    return full if FULL else quick


SIGNATURES = (
    "", "serving_default", "classify", "regress", "total", "float64", "int8", "string", "bool",
    "complex64", "uint64", "__saved_model_init_op", "nix", "\0",
)  # fmt: skip


def mutated(rng, raw):
    """The bytes with a few of them changed, dropped, doubled or moved."""
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(out) + 1)
        kind = rng.random()
        if kind < 0.3 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind < 0.5:
            out[at:at] = rng.randbytes(rng.choice((1, 1, 4, 100)))
        elif kind < 0.7:
            del out[at : at + rng.choice((1, 1, 4, 100))]
        elif kind < 0.85:
            del out[at:]
        else:
            out[at:at] = out[max(0, at - 20) : at + 20]
    return bytes(out)
