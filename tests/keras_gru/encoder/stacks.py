"""Encoders with random weights, and the oracle layer by layer."""

import numpy as np

from tests import oracle

MASK = np.array([[0, 0, 1, 1, 0, 1, 1], [1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]], bool)


def randomised(encoder, features=4, seed=0):
    encoder.build((None, None, features))
    rng = np.random.default_rng(seed)
    encoder.set_weights([rng.normal(size=w.shape) for w in encoder.get_weights()])
    return encoder


def sequences(seed=1, features=4):
    return np.random.default_rng(seed).normal(size=(3, 7, features)).astype("float32")


def oracle_layer(gru, x, h0, mask):
    """States (B, T, U) of one direction in input order, and the final state, in float64."""
    order = slice(None, None, -1 if gru.go_backwards else 1)
    states = np.array(
        [
            oracle.forward(
                row[order],
                start,
                *(w.astype("float64") for w in gru.get_weights()),
                reset_after=gru.reset_after,
                update_gate=gru.update_gate,
                mask=None if mask is None else mask[i][order],
            )[0]
            for i, (row, start) in enumerate(zip(x, h0, strict=True))
        ]
    )
    return states[:, order], states[:, -1]


def oracle_encoder(encoder, x, states, mask):
    outputs, final = x.astype("float64"), []
    for layer, state in zip(encoder.layers, states, strict=True):
        directions = (
            [layer.forward_layer, layer.backward_layer] if encoder.bidirectional else [layer]
        )
        starts = np.split(state.astype("float64"), len(directions), -1)
        pairs = [oracle_layer(d, outputs, s, mask) for d, s in zip(directions, starts, strict=True)]
        outputs = np.concatenate([p[0] for p in pairs], -1)
        final.append(np.concatenate([p[1] for p in pairs], -1))
    return outputs, final
