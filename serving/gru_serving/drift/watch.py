"""Comparison of logged requests with held-out rows, and the choice of texts worth labelling."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gru_serving.drift.histogram import NameBins, NumberBins
from gru_serving.drift.outcomes import Accuracy, Known, Outcomes
from gru_serving.drift.prediction_logs import Logged
from gru_serving.drift.quantities import SCORES, Quantities, Rows
from gru_serving.drift.reference import Distribution, Reference
from gru_serving.drift.stability import Stability, Verdict, share_verdict, stability
from gru_serving.drift.text_reader import TextReader
from gru_serving.engine.golden import VerificationError, read_golden, to_array
from gru_serving.errors import InvalidArgument

_ORDER: Sequence[Verdict] = ("stable", "moved", "shifted")
_SURENESS = f"{SCORES}: highest"


@dataclass(frozen=True)
class Finding:
    """The comparison of one quantity before and now.

    Attributes:
        name: The name of the quantity.
        before: The held-out rows in words: median and range of numbers, shares of names.
        now: The logged rows in words: median and range of numbers, shares of names.
        stability: The distance between the two distributions.
        outside: The share of logged rows outside of the range of 98 % of the held-out rows.
        outside_verdict: The verdict on that share.
        far_outside: The number of rows farther from that range than it is wide.
    """

    name: str
    before: str
    now: str
    stability: Stability
    outside: float = 0.0
    outside_verdict: Verdict = "stable"
    far_outside: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worse of the verdicts on the distribution and on the share of rows outside."""
        return max(self.stability.verdict, self.outside_verdict, key=_ORDER.index)


@dataclass(frozen=True)
class Report:
    """The findings of a watch.

    Attributes:
        rows: Rows that the version answered.
        requests: Number of requests that held these rows.
        others: Number of requests that other versions answered, by version number.
        golden: The number of golden requests among the logged ones, as `gru-serve verify --url`
            and the gates of a promotion send them; they are left out.
        findings: Findings on each quantity, the least stable first.
        accuracy: Accuracy on the rows whose outcome is known; None where there are none.
        worth: Texts to label next.
        since: Time of the first request, in seconds since 1970; None without any.
        until: Time of the last request, in seconds since 1970; None without any.
    """

    rows: int
    requests: int
    others: Mapping[int, int]
    findings: Sequence[Finding]
    accuracy: Accuracy | None = None
    worth: Sequence[Worth] = ()
    since: int | None = None
    until: int | None = None
    golden: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all quantities; stable without any request."""
        found = [finding.verdict for finding in self.findings]
        return max(found, key=_ORDER.index, default="stable")


@dataclass
class _Seen:
    requests: int = 0
    golden: int = 0
    since: int | None = None
    until: int | None = None
    others: Counter[int] = field(default_factory=Counter)


class Watch:
    """Collects logged requests and measures their distance from the reference.

    Args:
        version: Directory of the version whose answers are watched.
        outcomes: Known outcomes of texts.
        most: Texts to name for labelling, of each kind.
        model: Name of the model whose requests count; None if the logs are of one model.

    Attributes:
        models: Names of all models in the logs.

    Raises:
        ServingError: The version has no reference, or its files cannot be read.
    """

    def __init__(
        self, version: Path, outcomes: Known | None = None, most: int = 20, model: str | None = None
    ) -> None:
        self._reference = Reference.read(version)
        self._quantities = Quantities(TextReader.of_version(version), self._reference.columns)
        self._number = int(version.name) if version.name.isdecimal() else None
        self._outcomes = Outcomes(outcomes or {})
        bins = {name: one.bins for name, one in self._reference.quantities.items()}
        self._worth = WorthLabelling(
            {name: one for name, one in bins.items() if isinstance(one, NumberBins)}, most
        )
        self._numbers: dict[str, list[np.ndarray]] = {}
        self._names: dict[str, list[str]] = {}
        self._seen = _Seen()
        self._rows = 0
        self._model, self.models = model, set[str]()
        self._golden = _golden_inputs(version)

    def add(self, requests: Iterable[Logged], since: float = 0) -> None:
        """Add logged requests.

        Args:
            requests: Requests in the order of the log; those of other versions are only counted.
            since: Time before which requests are left out, in seconds since 1970.
        """
        for request in requests:
            if request.seconds < since:
                continue
            self.models.add(request.model)
            if self._model not in (None, request.model):
                continue
            if self._number is not None and request.version not in (0, self._number):
                self._seen.others[request.version] += 1
                continue
            self._add(request)

    def _add(self, request: Logged) -> None:
        if self._golden and _content(request.inputs) in self._golden:
            self._seen.golden += 1
            return
        rows = self._quantities(request.inputs, request.outputs)
        if not len(rows):
            return
        seen = self._seen
        seen.requests += 1
        seen.since = min(request.seconds, seen.since or request.seconds)
        seen.until = max(request.seconds, seen.until or request.seconds)
        self._rows += len(rows)
        for name in self._reference.quantities.keys() & rows.numbers.keys():
            self._numbers.setdefault(name, []).append(rows.numbers[name])
        for name in self._reference.quantities.keys() & rows.names.keys():
            self._names.setdefault(name, []).extend(rows.names[name])
        self._worth.add(rows)
        self._join(rows)

    def _join(self, rows: Rows) -> None:
        if rows.said and len(rows.texts) == len(rows.said):
            self._outcomes.add(rows.texts, rows.said)

    def report(self) -> Report:
        """Return the findings so far.

        Raises:
            InvalidArgument: The requests are of several models, and none was chosen.
        """
        if self._model is None and len(self.models) > 1:
            raise InvalidArgument(
                f"expected requests of one model, got those of {', '.join(sorted(self.models))}; "
                "choose one with --model"
            )
        findings = [
            _number_finding(name, self._reference.quantities[name], np.concatenate(values))
            for name, values in self._numbers.items()
        ] + [
            _name_finding(name, self._reference.quantities[name], values)
            for name, values in self._names.items()
        ]
        findings.sort(key=lambda one: (-_ORDER.index(one.verdict), -one.stability.value, one.name))
        seen = self._seen
        return Report(
            self._rows,
            seen.requests,
            dict(seen.others),
            findings,
            self._outcomes.accuracy(),
            self._worth.rows(),
            seen.since,
            seen.until,
            seen.golden,
        )


def _golden_inputs(version: Path) -> frozenset[tuple[Any, ...]]:
    """Return the inputs of the version's golden requests; empty if none can be read."""
    try:
        golden = read_golden(version)
    except VerificationError:
        return frozenset()
    asked = []
    for request in golden:
        inputs = request.get("inputs")
        if inputs is None:
            inputs = {
                name: [example.get(name, "") for example in request["examples"]]
                for name in request["examples"][0]
            }
        with suppress(TypeError, ValueError):  # lists of unequal length
            asked.append(_content({name: to_array(values) for name, values in inputs.items()}))
    return frozenset(asked)


def _content(inputs: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
    """Return the names, shapes and values of inputs, with numbers in single precision."""
    return tuple(
        (name, array.shape, tuple(array.ravel()) if array.dtype == object
         else array.astype(np.float32).tobytes())
        for name, array in sorted(inputs.items())
    )  # fmt: skip


def _number_finding(name: str, before: Distribution, values: np.ndarray) -> Finding:
    bins = before.bins
    assert isinstance(bins, NumberBins)
    there = values[~np.isnan(values)]
    now = "none" if not len(there) else _range(*np.quantile(there, [0.01, 0.5, 0.99]))
    counts = bins.counts(values)
    was = _range(bins.low, bins.median, bins.high)
    distances = bins.outside(there)
    outside, far = int((distances > 0).sum()), int((distances > 1).sum())
    rows, held_out = len(there), int(before.counts[:-1].sum())
    verdict = share_verdict(outside, rows, held_out) if rows and held_out else "stable"
    share = outside / max(1, rows)
    return Finding(name, was, now, stability(before.counts, counts), share, verdict, far)


def _range(low: float, median: float, high: float) -> str:
    return f"{median:.4g} ({low:.4g} to {high:.4g})"


def _name_finding(name: str, before: Distribution, values: Sequence[str]) -> Finding:
    bins = before.bins
    assert isinstance(bins, NameBins)
    counts = bins.counts(values)
    # The names whose share has changed most, the same ones on both sides.
    then, now = before.counts / before.counts.sum(), counts / max(1, counts.sum())
    order = np.argsort(-np.abs(now - then), kind="stable")
    shown = sorted(place for place in order[:3] if then[place] or now[place])
    labels = bins.labels()

    def said(shares: np.ndarray) -> str:
        return ", ".join(f"{labels[place] or '(none)'} {shares[place]:.1%}" for place in shown)

    return Finding(name, said(then), said(now), stability(before.counts, counts))


class Worth(NamedTuple):
    """A text to label.

    Attributes:
        text: Text of the request.
        answer: Name that the model answered; empty where it answers no name.
        reason: Reason to label the text, in words.
        weight: Degree of doubt or unlikeness, larger for more; comparable for one kind of reason.
    """

    text: str
    answer: str
    reason: str
    weight: float


class WorthLabelling:
    """The best few of all rows added so far.

    Args:
        bins: Bins of the quantities of the reference, by name.
        most: Rows to keep of each kind.
    """

    def __init__(self, bins: Mapping[str, NumberBins], most: int) -> None:
        self._bins, self._most = bins, most
        self._unsure: list[tuple[float, str, Worth]] = []
        self._unlike: list[tuple[float, str, Worth]] = []
        self._seen: set[str] = set()

    def add(self, rows: Rows) -> None:
        """Add rows; a text that was added before is ignored."""
        if not rows.texts:
            return
        answers = [", ".join(names) for names in rows.said] or [""] * len(rows.texts)
        sure = rows.numbers.get(_SURENESS)
        far, most_unlike = self._distances(rows)
        for place, text in enumerate(rows.texts):
            if text in self._seen:
                continue
            self._seen.add(text)
            if sure is not None:
                said = f"the highest score is {sure[place]:.3f}"
                self._keep(self._unsure, Worth(text, answers[place], said, 1 - float(sure[place])))
            if far[place] > 0:
                name = most_unlike[place]
                value = rows.numbers[name][place]
                bins = self._bins[name]
                said = f"{name} is {value:.3g}; 98 % are between {bins.low:.3g} and {bins.high:.3g}"
                self._keep(self._unlike, Worth(text, answers[place], said, float(far[place])))

    def rows(self) -> list[Worth]:
        """Return the least certain rows, then the most unusual ones, without repetition."""
        found: dict[str, Worth] = {}
        for heap in (self._unsure, self._unlike):
            for _, _, worth in sorted(heap, reverse=True):
                found.setdefault(worth.text, worth)
        return list(found.values())

    def _keep(self, heap: list[tuple[float, str, Worth]], worth: Worth) -> None:
        entry = (worth.weight, worth.text, worth)
        if len(heap) < self._most:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)

    def _distances(self, rows: Rows) -> tuple[np.ndarray, list[str]]:
        """Measure how far each row lies outside of the reference, (B,), and where most."""
        far, which = np.zeros(len(rows.texts)), [""] * len(rows.texts)
        for name, values in rows.numbers.items():
            if name in self._bins and name != _SURENESS:
                distance = self._bins[name].outside(values)
                for place in np.flatnonzero(distance > far):
                    which[place] = name
                far = np.maximum(far, distance)
        return far, which
