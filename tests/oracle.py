"""A GRU in NumPy float64 with explicit loops: the independent reference of the tests.

It imports nothing from the project. Weights are packed z | r | g as in Keras. Each function
takes one sequence at a time, (T, D); a batch is a Python loop around it.
"""

from __future__ import annotations

import numpy as np


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def normalized(a, gain):
    """Layer normalisation of one product, (U,)."""
    return (a - a.mean()) / np.sqrt(((a - a.mean()) ** 2).mean() + 1e-3) * gain


def forward_normalized(
    x, h0, kernel, recurrent_kernel, bias, gain, *, reset_after, update_gate="keep", mask=None
):
    """States of one sequence, (T, U), with layer normalisation by the gains (2, 3U)."""
    W, R = np.split(kernel, 3, 1), np.split(recurrent_kernel, 3, 1)
    k_in, k_rec = np.split(gain[0], 3), np.split(gain[1], 3)
    b_in = np.split(bias[0] if reset_after else bias, 3)
    b_rec = np.split(bias[1], 3) if reset_after else np.zeros((3, h0.shape[0]))
    h, states = h0, []
    for t in range(x.shape[0]):
        if mask is None or mask[t]:
            a = [normalized(x[t] @ W[k], k_in[k]) + b_in[k] for k in range(3)]
            z = sigmoid(a[0] + normalized(h @ R[0], k_rec[0]) + b_rec[0])
            r = sigmoid(a[1] + normalized(h @ R[1], k_rec[1]) + b_rec[1])
            if reset_after:
                g = np.tanh(a[2] + r * (normalized(h @ R[2], k_rec[2]) + b_rec[2]))
            else:
                g = np.tanh(a[2] + normalized((r * h) @ R[2], k_rec[2]))
            h = z * h + (1 - z) * g if update_gate == "keep" else (1 - z) * h + z * g
        states.append(h)
    return np.array(states)


def forward(x, h0, kernel, recurrent_kernel, bias, *, reset_after, update_gate="keep", mask=None):
    """States of one sequence, (T, U), and what `backward` needs."""
    U = h0.shape[0]
    W = [kernel[:, i * U : (i + 1) * U] for i in range(3)]
    R = [recurrent_kernel[:, i * U : (i + 1) * U] for i in range(3)]
    if bias is None:
        bias = np.zeros((2, 3 * U) if reset_after else 3 * U)
    b_in, b_rec = (bias[0], bias[1]) if reset_after else (bias, np.zeros(3 * U))
    b_in = [b_in[i * U : (i + 1) * U] for i in range(3)]
    b_rec = [b_rec[i * U : (i + 1) * U] for i in range(3)]
    h, states, cache = h0.astype(np.float64), [], []
    for t in range(x.shape[0]):
        if mask is not None and not mask[t]:
            cache.append(None)
            states.append(h)
            continue
        z = sigmoid(x[t] @ W[0] + b_in[0] + h @ R[0] + b_rec[0])
        r = sigmoid(x[t] @ W[1] + b_in[1] + h @ R[1] + b_rec[1])
        q = h @ R[2] + b_rec[2]
        if reset_after:
            g = np.tanh(x[t] @ W[2] + b_in[2] + r * q)
        else:
            g = np.tanh(x[t] @ W[2] + b_in[2] + (r * h) @ R[2])
        new = z * h + (1 - z) * g if update_gate == "keep" else (1 - z) * h + z * g
        cache.append((h, z, r, g, q))
        h = new
        states.append(h)
    return np.array(states), cache


def backward(
    d_states, d_final, cache, x, kernel, recurrent_kernel, *, reset_after, update_gate="keep"
):
    """Gradients of sum(states * d_states) + sum(final * d_final) for one sequence.

    Returns dx, dh0, dkernel, drecurrent_kernel, dbias, found one scalar weight at a time from the
    chain rule, without any of the project's regroupings.
    """
    T, U = x.shape[0], d_final.shape[0]
    W = [kernel[:, i * U : (i + 1) * U] for i in range(3)]
    R = [recurrent_kernel[:, i * U : (i + 1) * U] for i in range(3)]
    dx, dW, dR = np.zeros_like(x), [np.zeros_like(w) for w in W], [np.zeros_like(w) for w in R]
    db_in, db_rec = np.zeros((3, U)), np.zeros((3, U))
    dh = d_final.astype(np.float64)
    for t in reversed(range(T)):
        dh = dh + d_states[t]
        if cache[t] is None:
            continue
        h, z, r, g, q = cache[t]
        keep = update_gate == "keep"
        dz = dh * (h - g) * (1 if keep else -1)
        dg = dh * ((1 - z) if keep else z)
        d_previous = dh * (z if keep else (1 - z))
        daz, dag = dz * z * (1 - z), dg * (1 - g**2)
        if reset_after:
            dq, dr = dag * r, dag * q
            d_previous = d_previous + R[2] @ dq
            dR[2] += np.outer(h, dq)
            db_rec[2] += dq
        else:
            drh = R[2] @ dag
            dr = drh * h
            d_previous = d_previous + drh * r
            dR[2] += np.outer(r * h, dag)
        dar = dr * r * (1 - r)
        for gate, da in enumerate((daz, dar, dag)):
            dx[t] += W[gate] @ da
            dW[gate] += np.outer(x[t], da)
            db_in[gate] += da
        for gate, da in enumerate((daz, dar)):
            d_previous = d_previous + R[gate] @ da
            dR[gate] += np.outer(h, da)
            db_rec[gate] += da
        dh = d_previous
    db = np.stack([db_in.ravel(), db_rec.ravel()]) if reset_after else db_in.ravel()
    return dx, dh, np.concatenate(dW, 1), np.concatenate(dR, 1), db


def shown(states, mask, zero_output_for_mask=False):
    """Outputs of one sequence as Keras shows them at masked steps."""
    if mask is None:
        return states
    out, last = [], np.zeros_like(states[0])
    for state, valid in zip(states, mask, strict=True):
        if valid:
            last = state
        out.append(np.zeros_like(state) if zero_output_for_mask and not valid else last)
    return np.array(out)
