"""Golden requests sent to a server, or run on files; see `gru_serving.engine.golden`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gru_serving.client import Target
from gru_serving.client.errors import read_answer
from gru_serving.engine.golden import (
    TOLERANCE,
    Arrays,
    Engine,
    Request,
    Verdict,
    classified,
    local_engine,
    naming,
    read_golden,
    replay,
)
from gru_serving.engine.imports import quiet_stderr


def client_engine(client: Any, target: Target) -> Engine:
    """Make an engine that asks a server through a client of `gru_serving.client`."""

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


def verify_files(
    version: Path, tolerance: float = TOLERANCE, warmup: bool = False, runtime: str = "tensorflow"
) -> Verdict:
    """Load a version in this process and replay its golden requests.

    Args:
        version: Directory of the version.
        tolerance: Largest absolute difference allowed between numbers.
        warmup: Run its warmup requests too, as an engine does.
        runtime: `tensorflow`; or `onnx`, for the signatures that the version holds graphs for.

    Raises:
        ServingError: The version does not load, or refuses a warmup request.
        VerificationError: There are no golden requests, or an answer is wrong.
    """
    golden = read_golden(version)
    from gru_serving.engine.imports import import_tensorflow
    from gru_serving.engine.runtime import answered_by
    from gru_serving.engine.warmup import load_warm

    names = answered_by(version, runtime)
    if names is not None:
        golden = [request for request in golden if request["signature_name"] in names]
    with naming(str(version)):
        if runtime == "tensorflow":
            with quiet_stderr():
                import_tensorflow()
        predictor = load_warm(version, iterations=1 if warmup else 0, runtime=runtime)
    try:
        return replay(golden, local_engine(predictor), tolerance)
    finally:
        predictor.close()
