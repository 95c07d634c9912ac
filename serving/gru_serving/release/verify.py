"""Whether a version's files answer as its Keras model did at export."""

from __future__ import annotations

from pathlib import Path

from gru_serving.engine.golden import TOLERANCE, Verdict, local_engine, naming, read_golden, replay
from gru_serving.engine.imports import quiet_stderr


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
