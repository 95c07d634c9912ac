"""Tensors of other frameworks as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def take(framework: str, arrays: Mapping[str, Any], names: tuple[str, ...]) -> list[Array]:
    """Named arrays of a mapping, or a ValueError that lists what was expected and what came."""
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(
            f"The weights of a {framework} GRU must have {list(names)}; missing: {missing}. "
            f"Received: {sorted(map(str, arrays))}"
        )
    return [to_array(arrays[name]) for name in names]


def to_array(value: Any) -> Array:
    """A framework's tensor as a NumPy array."""
    if hasattr(value, "detach"):  # PyTorch: NumPy takes neither gradients nor devices
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return np.asarray(value)
