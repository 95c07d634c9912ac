"""Whether a version's files answer as its Keras model did at export."""

from __future__ import annotations

from pathlib import Path

from serving.engine.quiet import quiet_stderr
from serving.release.golden import TOLERANCE, Verdict, local_engine, naming, read_golden, replay


def verify_files(version: Path, tolerance: float = TOLERANCE, warmup: bool = False) -> Verdict:
    """Load a version in this process and replay its golden requests.

    Args:
        version: Its directory.
        tolerance: Largest absolute difference allowed between numbers.
        warmup: Run its warmup requests too, as an engine does.

    Raises:
        ServingError: The version does not load, or refuses a warmup request.
        VerificationError: There are no golden requests, or an answer is wrong.
    """
    golden = read_golden(version)
    with quiet_stderr():
        from serving.engine.warmup import load_warm
    with naming(str(version)):
        predictor = load_warm(version, iterations=1 if warmup else 0)
    try:
        return replay(golden, local_engine(predictor), tolerance)
    finally:
        predictor.close()
