"""Golden requests, asked of a server; `gru_serving.engine.golden` says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gru_serving.client import Target
from gru_serving.client.errors import read_answer
from gru_serving.engine.golden import Arrays, Engine, Request, classified


def client_engine(client: Any, target: Target) -> Engine:
    """A server, asked through a client of `gru_serving.client`."""

    def ask(request: Request) -> Mapping[str, npt.NDArray[Any]]:
        which = {
            "model": target.model,
            "version": target.version,
            "label": target.label,
            "signature": request["signature_name"],
        }
        method = request.get("method", "predict")
        if method == "predict":
            answer: Arrays = client.predict(request["inputs"], **which)
            return answer
        if method == "classify":
            return read_answer(classified, client.classify(request["examples"], **which))
        return {"outputs": np.array(client.regress(request["examples"], **which), np.float32)}

    return ask
