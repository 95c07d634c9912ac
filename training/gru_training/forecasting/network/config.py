"""What a forecasting network is made of, and the shapes it works on; needs no TensorFlow."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from gru_training.config import OptionalFlag
from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, Integers, OneOf

_LONGEST_SEGMENT = 48
_MOST_EMBEDDED = 32
"""Targets, beyond which the network knows none of them by itself."""


@dataclass(frozen=True)
class ForecasterConfig:
    """The network: what it reads, how it decodes, what it minimises."""

    architecture: Annotated[
        Literal["segment", "one_shot", "seq2seq"], OneOf(("segment", "one_shot"))
    ] = "segment"
    """segment: GRU over segments, output segments in parallel (SegRNN); one_shot: GRU over the
    steps, then all horizons at once; seq2seq: a second GRU that is fed its own forecasts."""
    units: Annotated[int, Integers(32, 256, 32)] = 128
    """Size of the GRU's state."""
    layers: int = 1
    """GRU layers stacked on each other, with --dropout between them."""
    segment: int | None = None
    """Steps per segment, of architecture segment; default: some seasons, or a part of one."""
    dropout: Annotated[float, Floats(0.0, 0.4)] = 0.1
    """Share of the features dropped while training, between stacked GRUs and before the last
    layer."""
    channel_independent: bool = True
    """Forecast each target from its own past alone, all with the same weights; other columns are
    then not read. Otherwise one network reads all columns together."""
    channel_embedding: OptionalFlag = None
    """Give each target a learned vector; for architecture segment with --channel-independent.
    Default: up to 32 targets, and none of a table with a row for each series and time. There it
    tells the series apart by their names, and one more vector stands for unknown series."""
    normalisation: Annotated[
        Literal["none", "last", "reversible", "difference"], OneOf(("last", "reversible"))
    ] = "last"
    """Per window and column: subtract the last value; or normalise by mean and deviation (RevIN
    without weights); or read changes from step to step. Only one_shot with none or difference can
    answer tick by tick."""
    linear_skip: bool = False
    """Add a linear map from the look-back to the forecast, initialised with the ridge baseline, so
    that the GRU learns the residual."""
    loss: Annotated[
        Literal["mse", "mae", "huber", "quantile", "poisson", "negative_binomial"],
        OneOf(("mse", "mae", "huber")),
    ] = "mse"
    """What training minimises, on standardised values, and what the weights of a combination make
    small; quantile: the pinball loss of all levels, and the absolute error of the median; poisson,
    negative_binomial: for counts, the deviance of these distributions."""
    intervals: tuple[float, ...] = (0.8, 0.95)
    """Shares of the values that the intervals around a forecast are to hold."""

    @property
    def levels(self) -> tuple[float, ...]:
        """Of the quantiles that bound the intervals, ascending, and .5, the forecast's."""
        tails = sorted(round((1 - share) / 2, 9) for share in self.intervals)
        return (*tails, 0.5, *(round(1 - tail, 9) for tail in reversed(tails)))

    @property
    def measure(self) -> Literal["mse", "mae"]:
        """What forecasts are judged by: the absolute error where medians are learned."""
        return "mae" if self.loss in ("mae", "quantile") else "mse"

    @property
    def streams(self) -> bool:
        """Whether the model can answer tick by tick: nothing it reads depends on later ticks."""
        causal = self.normalisation in ("none", "difference")
        return self.architecture == "one_shot" and causal and not self.linear_skip

    def for_series(self, lookback: int, season: int, targets: int) -> "ForecasterConfig":
        """The same with everything chosen that follows from the series.

        Args:
            lookback: L, steps read.
            season: Steps.
            targets: K, columns forecast.
        """
        segment, embedding = self.segment, self.channel_embedding
        if segment is None:
            segment = _segment(lookback, season)
        if embedding is None:
            embedding = targets <= _MOST_EMBEDDED
        return replace(self, segment=segment, channel_embedding=embedding)

    def require_lookback(self, steps: int) -> None:
        """Raise ConfigError where a segment is longer than what is read."""
        if self.architecture == "segment" and self.segment is not None and self.segment > steps:
            raise ConfigError(
                f"--segment must be at most the look-back of {steps} steps, got {self.segment}"
            )

    def __post_init__(self) -> None:
        for flag, value in (
            ("--units", self.units),
            ("--layers", self.layers),
            ("--segment", self.segment),
        ):
            if value is not None and value < 1:
                raise ConfigError(f"{flag} must be at least 1, got {value}")
        if self.architecture == "segment" and self.units % 2:
            raise ConfigError(f"--units must be even for --architecture segment, got {self.units}")
        shares = self.intervals
        if not shares or len(set(shares)) < len(shares) or not all(0 < each < 1 for each in shares):
            raise ConfigError(
                "--intervals must be one or more different shares above 0 and below 1, got "
                f"{' '.join(map(str, shares))}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"--dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True)
class ForecastShape:
    """What a forecaster reads and answers."""

    lookback: int
    """L, steps read."""
    horizon: int
    """H, steps forecast."""
    channels: int
    """C, columns read."""
    targets: tuple[int, ...]
    """K different column numbers, those forecast."""

    def __post_init__(self) -> None:
        for name in ("lookback", "horizon", "channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        allowed = set(range(self.channels))
        if not self.targets or len(set(self.targets)) < len(self.targets):
            raise ValueError(f"targets must be one or more different columns, got {self.targets}")
        if not set(self.targets) <= allowed:
            raise ValueError(
                f"targets must lie in 0 to {self.channels - 1} (channels {self.channels}), "
                f"got {self.targets}"
            )


def _segment(lookback: int, season: int) -> int:
    """The most seasons, or the longest part of one, of which there are several in what is read."""
    most = min(_LONGEST_SEGMENT, lookback // 5)
    if season <= most and season > 1:
        return most // season * season
    longest = max(1, min(_LONGEST_SEGMENT, lookback // 3))
    part = max(steps for steps in range(1, longest + 1) if season % steps == 0)
    return part if 4 * part > longest else max(1, lookback // 8)
