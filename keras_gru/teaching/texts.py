"""The four teaching texts that the worked examples quote, so that a reader can find the page."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """One text, and which of the published conventions it writes."""

    name: str
    """What the worked examples call it."""
    title: str
    """What stands at its head."""
    about: str
    update_gate: str
    """`keep` (4a) or `replace` (4b)."""
    credited: str
    """To whom the text credits its GRU, and whether that is right."""
    reset: str
    reduction: str
    """How the losses of the steps become one."""


TEXTS = (
    Text(
        "gru_explained",
        "Gated Recurrent Unit (GRU)",
        'from plain English to backpropagation through time, in boxes and diagrams; "good movie"',
        "keep",
        "Cho et al. 2014: right",
        "before the matmul",
        "mean; its gradients are those of the sum (EX-11)",
    ),
    Text(
        "gru_numerical_notes",
        "Numerical RNN - notes; Deep Neural Networks, AIML ZG511, BITS Pilani",
        "one training step with all its arithmetic; x_t = [0.8, 0.6]",
        "replace",
        "nobody",
        "before the matmul",
        "one step: sum and mean are the same",
    ),
    Text(
        "gru_architecture",
        "GRU Architecture",
        "equations, comparison with the LSTM, PyTorch classes, variants",
        "replace",
        "Cho et al. 2014: wrong, it is the GRU of Chung et al. 2014 (AR-6)",
        "before in one class, after in the other (AR-2)",
        "none",
    ),
    Text(
        "rnn_lstm_gru_notes",
        "Recurrent Neural Networks; Recurrent Neural Networks (RNNs) Overview",
        'RNN, backpropagation through time, LSTM, GRU; "de" → "p"; state s, gates o and i',
        "replace",
        "nobody",
        "before the matmul",
        "sum",
    ),
)
