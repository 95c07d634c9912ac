"""How versions are brought into memory, as the flags want it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gru_serving.config.batching_options import BatchingOptions
from gru_serving.engine.session_options import SessionOptions


@dataclass(frozen=True)
class LoadOptions:
    """How versions are brought into memory.

    Attributes:
        tags: Of the MetaGraph to load.
        session: Threads and the like of a graph's session.
        warmup_iterations: Times to run each warmup request; 0 runs none.
        check_method_names: Refuse signatures whose `method_name` does not fit the request.
        batching: Merge requests like this; None for not at all.
        per_model_batching: Merge the requests of those versions only that carry parameters of
            their own, by these.
        prefer_tflite: Load `model.tflite` where a version has one.
        tflite_interpreters: Requests that one TFLite model works on at once.
        trial: Try versions in a process of their own first: `auto` those without digests,
            `always` all, `never` none.
        runtime: What runs versions: of `gru_serving.engine.runtime.RUNTIMES`.
        seconds: Allowed for one load; 0 for no limit.
    """

    tags: Sequence[str] = ("serve",)
    session: SessionOptions = field(default_factory=SessionOptions)
    warmup_iterations: int = 1
    check_method_names: bool = False
    batching: BatchingOptions | None = None
    per_model_batching: bool = False
    prefer_tflite: bool = False
    tflite_interpreters: int = 1
    trial: str = "never"
    runtime: str = "auto"
    seconds: float = 0.0
