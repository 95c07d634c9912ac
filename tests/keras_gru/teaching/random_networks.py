"""Networks with random weights, one of every kind that a network file can describe."""

import numpy as np

BLOCKS = {"gru": "zrg", "rnn": "h", "lstm": "ifgo"}


def random_fields(
    seed=1, T=3, D=3, U=2, outputs=2, loss="cross_entropy", cell="gru", reset_after=False, **changes
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
    conventions = {} if cell in ("rnn", "lstm") else {"update_gate": "keep"}
    if cell == "gru":
        conventions["reset_after"] = reset_after
    if cell == "lstm":
        conventions["initial_cell"] = rng.normal(size=U).tolist()
    return {
        "cell": cell,
        **conventions,
        "weights": {name: gate() for name in BLOCKS.get(cell, "zg")},
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
    "rnn": random_fields(21, cell="rnn", T=4),
    "rnn_sigmoid": random_fields(22, cell="rnn", activation="sigmoid", reduction="sum", U=3, D=2),
    "rnn_last_step": random_fields(23, cell="rnn", targets=[None, None, [0, 1]]),
    "lstm": random_fields(24, cell="lstm", T=4),
    "lstm_sigmoid": random_fields(25, cell="lstm", activation="sigmoid", U=3, D=1),
    "lstm_one_step": random_fields(26, cell="lstm", T=1, U=1, loss="squared_error"),
    "mgu_keep": random_fields(27, cell="mgu"),
    "mgu_replace": random_fields(28, cell="mgu", update_gate="replace", reduction="sum"),
    "minimal_gru_keep": random_fields(29, cell="minimal_gru", U=3),
    "minimal_gru_replace": random_fields(30, cell="minimal_gru", update_gate="replace"),
    "coupled_gru_keep": random_fields(31, cell="coupled_gru", activation="relu"),
    "coupled_gru_replace": random_fields(32, cell="coupled_gru", update_gate="replace", U=3),
}
