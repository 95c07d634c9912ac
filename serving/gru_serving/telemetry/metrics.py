"""Counters and histograms with TF Serving's names, in Prometheus' text form.

prometheus-client cannot write them: it adds `_total` to the name of a counter and a HELP line to
every metric, and closes buckets on the side that TensorFlow leaves open.
"""

from __future__ import annotations

import copy
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, ClassVar

from gru_serving.printable import escaped
from gru_serving.telemetry.request_record import RequestRecord

DEFAULT_PATH = "/monitoring/prometheus/metrics"
MICROSECONDS = tuple(10 * 1.8**n for n in range(33))
QUEUE_MICROSECONDS = tuple(100 * 1.2**n for n in range(52))
BATCH_SIZES = tuple(2.0**n for n in range(14))
SHADOW_MICROSECONDS = tuple(10 * 1.25**n for n in range(62))
DIFFERENCES = tuple(10.0**n for n in range(-9, 3))
EXAMPLE_COUNTS = tuple(2.0**n for n in range(15))
OTHERS = "(others)"
_MAX_BAD_NAMES, _MAX_NAME_CHARACTERS = 1000, 256
"""Limits on names that never got a good answer."""


class ClientNames:
    """Names chosen by clients as values of a label, in a bounded amount of memory.

    Names that got a good answer stand for themselves, and so do some others. Names that are too
    long, or beyond the limit, count as `OTHERS`.
    """

    def __init__(self) -> None:
        self._good: set[str] = set()
        self._bad: set[str] = set()

    def label(self, name: str, good: bool) -> str:
        """Return the label value for a request with this name, answered well or not."""
        if good:
            self._good.add(name)
        elif name not in self._good and name not in self._bad:
            if len(self._bad) >= _MAX_BAD_NAMES or len(name) > _MAX_NAME_CHARACTERS:
                return OTHERS
            self._bad.add(name)
        return name


class Family:
    """A metric with all its labels; pickled, it is a copy of its samples.

    Args:
        name: Name of the metric.
        labels: Names of the labels.
    """

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        self.name = name
        self.labels = tuple(labels)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {key: value for key, value in vars(self).items() if key != "_lock"}
            return copy.deepcopy(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


class Counter(Family):
    """A number per combination of label values that only grows."""

    kind = "counter"

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        super().__init__(name, labels)
        self._values: dict[tuple[str, ...], float] = {}
        self._forgotten = 0.0

    def add(self, *values: str, by: float = 1) -> None:
        """Add to the number; one value per label."""
        with self._lock:
            self._values[values] = self._values.get(values, 0) + by

    def forget(self, **labels: str) -> None:
        """Drop the samples with these label values.

        Ignored if a label is not one of this metric's.
        """
        with self._lock:
            for values in _matching(self.labels, self._values, labels):
                self._forgotten += self._values.pop(values)

    def absorb(self, other: Counter) -> None:
        """Add the samples of the same metric of another process."""
        with self._lock:
            for values, number in other._values.items():
                self._values[values] = self._values.get(values, 0) + number
            self._forgotten += other._forgotten

    def total(self) -> int:
        """Sum over all labels, including dropped samples, so that it never falls."""
        with self._lock:
            return int(sum(self._values.values()) + self._forgotten)

    def lines(self) -> Iterator[str]:
        """Yield the samples as text."""
        with self._lock:
            items = sorted(self._values.items())
        for values, count in items:
            yield f"{self.name}{_labels(self.labels, values)} {count}"


class Gauge(Counter):
    """A number per combination of label values.

    Args:
        name: Name of the metric.
        labels: Names of the labels.
        of_several: Function that makes one number of those of several processes.
    """

    kind = "gauge"

    def __init__(
        self, name: str, labels: Sequence[str], of_several: Callable[..., float] = sum
    ) -> None:
        super().__init__(name, labels)
        self._of_several = of_several

    def absorb(self, other: Counter) -> None:
        """Join the numbers of another process with these."""
        with self._lock:
            for values, number in other._values.items():
                mine = self._values.get(values, number)
                self._values[values] = self._of_several((mine, number))

    def set(self, number: float, *values: str) -> None:
        """Set the number; one text per label follows it."""
        with self._lock:
            self._values[values] = number


class Histogram(Family):
    """Distribution of a value per combination of label values.

    Buckets are open above, as TensorFlow's: a value equal to a bound counts in the next bucket.

    Args:
        name: Name of the metric.
        labels: Names of the labels.
        bounds: Bounds between the buckets, ascending.
        digits: Digits of the sum; TF Serving's has six, 17 lose nothing.
    """

    kind = "histogram"

    def __init__(
        self, name: str, labels: Sequence[str], bounds: Sequence[float], digits: int = 6
    ) -> None:
        super().__init__(name, labels)
        self._digits = digits
        self._bounds = tuple(bounds)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count a value; one text per label follows it."""
        with self._lock:
            counts = self._counts.get(values)
            if counts is None:
                counts = self._counts[values] = [0] * (len(self._bounds) + 1)
            counts[bisect_right(self._bounds, value)] += 1
            self._sums[values] = self._sums.get(values, 0.0) + value

    def absorb(self, other: Histogram) -> None:
        """Add the samples of the same metric of another process."""
        with self._lock:
            for values, counts in other._counts.items():
                mine = self._counts.get(values, [0] * len(counts))
                self._counts[values] = [sum(pair) for pair in zip(mine, counts, strict=True)]
                self._sums[values] = self._sums.get(values, 0.0) + other._sums[values]

    def forget(self, **labels: str) -> None:
        """Drop the series with these labels, like `Counter.forget`."""
        with self._lock:
            for values in _matching(self.labels, self._counts, labels):
                del self._counts[values], self._sums[values]

    def lines(self) -> Iterator[str]:
        """Yield the samples as text."""
        with self._lock:
            items = sorted(
                (key, list(counts), self._sums[key]) for key, counts in self._counts.items()
            )
        texts = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        for values, counts, total in items:
            for text, below in zip(texts, accumulate(counts), strict=True):
                labels = _labels((*self.labels, "le"), (*values, text))
                yield f"{self.name}_bucket{labels} {below}"
            labels = _labels(self.labels, values)
            yield f"{self.name}_sum{labels} {total:.{self._digits}g}"
            yield f"{self.name}_count{labels} {sum(counts)}"


class ProcessFigures:
    """Memory, processor time and descriptors of this process, by prometheus-client's collector."""

    _OF_SEVERAL: ClassVar[dict[str, Callable[..., float]]] = {
        "process_open_fds": max,
        "process_max_fds": max,
        "process_start_time_seconds": min,
    }

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector

        self._collector = ProcessCollector(registry=CollectorRegistry())

    def families(self) -> list[Counter]:
        """Measure the process; empty where the system does not say."""
        found: list[Counter] = []
        for metric in self._collector.collect():
            for sample in metric.samples:
                if metric.type == "counter":
                    family = Counter(sample.name, ())
                else:
                    family = Gauge(sample.name, (), self._OF_SEVERAL.get(sample.name, sum))
                family.add(by=sample.value)
                found.append(family)
        return found


class Metrics:
    """All metrics of a server."""

    def __init__(self) -> None:
        self._model_names = ClientNames()
        self.request_count = Counter(":tensorflow:serving:request_count", ("model_name", "status"))
        self.request_latency = Histogram(
            ":tensorflow:serving:request_latency",
            ("model_name", "API", "entrypoint"),
            MICROSECONDS,
        )
        self.runtime_latency = Histogram(
            ":tensorflow:serving:runtime_latency", ("model_name", "API", "runtime"), MICROSECONDS
        )
        self.request_example_count_total = Counter(
            ":tensorflow:serving:request_example_count_total", ("model",)
        )
        self.request_example_counts = Histogram(
            ":tensorflow:serving:request_example_counts", ("model",), EXAMPLE_COUNTS
        )
        self.request_log_count = Counter(
            ":tensorflow:serving:request_log_count", ("model_name", "status")
        )
        self.model_warmup_latency = Histogram(
            ":tensorflow:serving:model_warmup_latency", ("model_path", "status"), MICROSECONDS
        )
        self.model_warmup_records_read = Counter(
            ":tensorflow:serving:model_warmup_records_read", ("model_path", "status")
        )
        self.mlmd_map = Gauge(":tensorflow:serving:mlmd_map", ("model_name", "version"), max)
        self.model_runtime = Gauge(
            "gru_serve:model_runtime", ("model_name", "version", "runtime"), max
        )
        batching = ":tensorflow:serving:batching_session:"
        self.queuing_latency = Histogram(
            f"{batching}queuing_latency", ("thread_pool_name",), QUEUE_MICROSECONDS
        )
        self.wrapped_run_count = Counter(f"{batching}wrapped_run_count", ())
        self.padding_size = Histogram(
            f"{batching}padding_size", ("execution_batch_size",), BATCH_SIZES
        )
        self.input_batch_size = Histogram(f"{batching}input_batch_size", (), BATCH_SIZES)
        self.processed_batch_size = Histogram(f"{batching}processed_batch_size", (), BATCH_SIZES)
        self.direct_session_runs = Counter(":tensorflow:core:direct_session_runs", ())
        self.graph_runs = Counter(":tensorflow:core:graph_runs", ())
        self.graph_run_time_usecs = Counter(":tensorflow:core:graph_run_time_usecs", ())
        self.load_attempt_count = Counter(
            ":tensorflow:cc:saved_model:load_attempt_count", ("model_path", "status")
        )
        self.refused_count = Counter("gru_serve:refused_count", ("reason",))
        self.signature_check_count = Counter(
            "gru_serve:signature_check_count", ("model_path", "outcome")
        )
        self.in_progress = Gauge("gru_serve:requests_in_progress", ("entrypoint",))
        pair = ("model_name", "version", "shadow_version")
        self.shadow_count = Counter("gru_serve:shadow_count", (*pair, "outcome"))
        self.shadow_latency = Histogram(
            "gru_serve:shadow_latency", (*pair, "answering"), SHADOW_MICROSECONDS, digits=17
        )
        self.shadow_difference = Histogram(
            "gru_serve:shadow_difference", pair, DIFFERENCES, digits=17
        )
        self.process: ProcessFigures | None = None
        self.load_latency = Counter(":tensorflow:cc:saved_model:load_latency", ("model_path",))

    @contextmanager
    def runtime(self, model: str, api: str) -> Iterator[None]:
        """Time a model run inside the context; a failed one is not counted."""
        started = time.perf_counter()
        yield
        self.runtime_latency.observe((time.perf_counter() - started) * 1e6, model, api, "TF1")

    def examples(self, model: str, count: int) -> None:
        """Count the examples of a successful MultiInference; TF Serving counts no others."""
        self.request_example_counts.observe(count, model)
        self.request_example_count_total.add(model, by=count)

    @contextmanager
    def loading(self, path: str) -> Iterator[None]:
        """Count and time a load."""
        for outcome in ("success", "fail"):
            self.load_attempt_count.add(path, outcome, by=0)  # so that the first is an increase
        started = time.perf_counter()
        status = "fail"
        try:
            yield
            status = "success"
        finally:
            self.load_attempt_count.add(path, status)
            self.load_latency.add(path, by=int((time.perf_counter() - started) * 1e6))

    def request(self, model: str, api: str, entrypoint: str, status: str, started: float) -> None:
        """Count a request; only the time of a successful one is recorded.

        Args:
            model: Name, see `ClientNames`; empty where the request names none.
            api: "Predict", or over REST the verb of the path.
            entrypoint: "GRPC" or "REST".
            status: Name of the canonical code.
            started: `time.perf_counter()` at its begin.
        """
        good = status == "OK"
        self.request_count.add(self._model_names.label(model, good), status)
        if good:
            taken = (time.perf_counter() - started) * 1e6
            self.request_latency.observe(taken, model, api, entrypoint)

    def total(self, path: str) -> int:
        """Sum a counter over all its labels; 0 for a name that is not a counter.

        Args:
            path: Name as in TensorFlow, `/tensorflow/serving/request_count`, or as in Prometheus.
        """
        name = re.sub(r"[^a-zA-Z0-9_]", ":", path)
        return sum(
            metric.total()
            for metric in self.families()
            if isinstance(metric, Counter) and metric.name == name
        )

    def include(self, *metrics: Counter | Histogram) -> None:
        """Include further metrics in the page."""
        vars(self).update({metric.name: metric for metric in metrics})

    def forget(self, **labels: str) -> None:
        """Drop the samples with these label values from all metrics that have the labels."""
        for metric in self.families():
            metric.forget(**labels)

    def whole(self) -> Metrics:
        """Return the metrics of the whole server, of which this process may be a part."""
        return self

    def absorb(self, families: Iterable[Counter | Histogram]) -> None:
        """Add the metrics of another process to these."""
        by_name = {metric.name: metric for metric in self.families()}
        for other in families:
            mine: Any = by_name.get(other.name)
            if mine is None:
                self.include(copy.deepcopy(other))
            else:
                mine.absorb(other)

    def lines(self) -> Iterator[str]:
        """Yield all samples by name in Prometheus' text form.

        A metric without any shows its type.
        """
        for metric in sorted(self.families(), key=lambda metric: metric.name):
            yield f"# TYPE {metric.name} {metric.kind}"
            yield from metric.lines()

    def families(self) -> list[Counter | Histogram]:
        """Return the metrics, each with all its labels."""
        own = [one for one in vars(self).values() if isinstance(one, Counter | Histogram)]
        return own if self.process is None else [*own, *self.process.families()]


def page(lines: Iterable[str]) -> bytes:
    """Join lines of `Metrics.lines` as bytes."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _matching(
    names: Sequence[str], series: Iterable[tuple[str, ...]], labels: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """Return the series with these label values."""
    if not labels.keys() <= set(names):
        return []
    places = [(names.index(name), value) for name, value in labels.items()]
    return [one for one in series if all(one[place] == value for place, value in places)]


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(value: str) -> str:
    if not value.isprintable():  # the format would take all but line ends as they are
        value = "\n".join(map(escaped, value.split("\n")))
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


PREFIX = "gru_serve:"
_LABELS = ("model_name", "version", "signature", "entrypoint")


class VersionMetrics:
    """Counts the requests that reached a version.

    Args:
        metrics: The page on which these appear too.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._signatures = ClientNames()
        self._count = Counter(f"{PREFIX}request_count", (*_LABELS, "status"))
        self._latency = Histogram(f"{PREFIX}request_latency", _LABELS, MICROSECONDS, digits=17)
        metrics.include(self._count, self._latency)
        metrics.process = ProcessFigures()

    def __call__(self, record: RequestRecord) -> None:
        """Count one request."""
        if record.version is None:
            return
        good = record.status == "OK"
        signature = self._signatures.label(record.signature, good)
        labels = (record.model, str(record.version), signature, record.transport)
        self._count.add(*labels, record.status)
        if good:
            self._latency.observe(record.seconds * 1e6, *labels)
