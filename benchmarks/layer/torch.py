"""`torch.nn.GRU` on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.layer.contest import Array, Contest
from benchmarks.layer.worker import Contender, Key

NAME = "PyTorch"


def versions() -> dict[str, str]:
    """Version of PyTorch."""
    return {"torch": torch.__version__}


def contenders(contest: Contest, weights: dict[str, Array]) -> dict[Key, Contender]:
    """Inference and training of a layer, or a call that adds one.

    Args:
        contest: of the table `"layer"` or `"launch"`.
        weights: arrays by the names of the module's state dict.
    """
    x = torch.from_numpy(contest.inputs())
    if contest.table == "launch":
        run = Contender(lambda: x + 1, (x + 1).numpy, "TensorFlow")
        return {("launch", NAME): run}
    gru = torch.nn.GRU(contest.shape.features, contest.shape.units, batch_first=True)
    gru.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})

    def infer() -> torch.Tensor:
        with torch.no_grad():
            outputs: torch.Tensor = gru(x)[0]
            return outputs

    def train() -> None:
        gru.zero_grad()
        outputs, final = gru(x)
        ((final * final).sum() + (outputs * outputs).sum()).backward()

    def gradients() -> Any:
        train()
        return {name: np.asarray(parameter.grad) for name, parameter in gru.named_parameters()}

    return {
        ("inference", NAME): Contender(infer, lambda: infer().numpy(), "Keras"),
        ("training", NAME): Contender(train, gradients, "Keras"),
    }
