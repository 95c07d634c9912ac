"""Networks with random weights, one of every kind that a network file can describe."""

import numpy as np

from keras_gru.teaching.network import GATES


def random_fields(
    seed=1, T=3, D=3, U=2, outputs=2, loss="cross_entropy", reset_after=False, **changes
):
    rng = np.random.default_rng(seed)

    def gate():
        parts = {
            "W": rng.normal(size=(U, D)),
            "U": rng.normal(size=(U, U)),
            "b": rng.normal(size=U),
        }
        if reset_after:
            parts["b_recurrent"] = rng.normal(size=U)
        return {name: value.tolist() for name, value in parts.items()}

    targets = rng.dirichlet(np.ones(outputs), size=T).tolist()
    return {
        "update_gate": "keep",
        "reset_after": reset_after,
        "weights": {name: gate() for name in GATES},
        "output": {
            "W": rng.normal(size=(outputs, U)).tolist(),
            "b": rng.normal(size=outputs).tolist(),
            "loss": loss,
        },
        "inputs": rng.normal(size=(T, D)).tolist(),
        "initial_state": rng.normal(size=U).tolist(),
        "targets": targets,
        "learning_rate": 0.1,
        **changes,
    }


NETWORKS = {
    "keep_before": random_fields(),
    "keep_after": random_fields(2, reset_after=True, T=4),
    "replace_before": random_fields(3, update_gate="replace", reduction="sum"),
    "replace_after": random_fields(4, update_gate="replace", reset_after=True, U=3, D=1),
    "last_step_only": random_fields(5, targets=[None, None, [0.25, 0.75]]),
    "gap_in_targets": random_fields(6, targets=[[1, 0], None, [0, 1]], reset_after=True),
    "one_step_one_unit": random_fields(
        7, T=1, U=1, D=1, outputs=1, targets=[[1.0]], loss="binary_cross_entropy"
    ),
    "squared_error": random_fields(8, loss="squared_error", activation="linear"),
    "relu": random_fields(9, activation="relu", recurrent_activation="sigmoid", reset_after=True),
    "sigmoid_candidate": random_fields(10, activation="sigmoid", reduction="sum"),
}
