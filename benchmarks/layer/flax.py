"""`flax.linen.RNN(GRUCell)` under `jax.jit`, and the overhead of `jax.jit` itself."""

from __future__ import annotations

from typing import Any

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.layer.contest import Contest
from benchmarks.layer.worker import Contender, Key

NAME = "Flax"


def versions() -> dict[str, str]:
    """Versions of Flax and JAX."""
    return {"flax": flax.__version__, "jax": jax.__version__}


def contenders(contest: Contest, weights: Any) -> dict[Key, Contender]:
    """Inference and training of a layer, or a call that adds one.

    Args:
        contest: of the table `"layer"` or `"launch"`.
        weights: the cell's parameters.
    """
    x = jnp.asarray(contest.inputs())
    if contest.table == "launch":
        add_one = jax.jit(lambda x: x + 1)
        run = Contender(
            lambda: add_one(x).block_until_ready(), lambda: np.asarray(add_one(x)), "TensorFlow"
        )
        return {("launch", "JAX"): run}
    rnn = nn.RNN(nn.GRUCell(contest.shape.units, parent=None), return_carry=True)
    (name,) = rnn.init(jax.random.PRNGKey(0), x)["params"]
    variables = {"params": {name: jax.tree.map(jnp.asarray, weights)}}

    def loss(variables: Any, x: jax.Array) -> jax.Array:
        final, outputs = rnn.apply(variables, x)
        return (final * final).sum() + (outputs * outputs).sum()

    infer = jax.jit(lambda variables, x: rnn.apply(variables, x)[1])
    train = jax.jit(jax.grad(loss))

    def gradients() -> Any:
        return jax.tree.map(np.asarray, train(variables, x)["params"][name])

    return {
        ("inference", NAME): Contender(
            lambda: infer(variables, x).block_until_ready(),
            lambda: np.asarray(infer(variables, x)),
            "Keras",
        ),
        ("training", NAME): Contender(
            lambda: jax.block_until_ready(train(variables, x)), gradients, "Keras"
        ),
    }
