"""The settings of forecasting and of its commands; needs no TensorFlow.

See `gru_training.config`.
"""

import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import (
    OptionalFlag,
    OptionalName,
    RunConfig,
    TrainingConfig,
    require_at_least,
    require_split,
)
from gru_training.data.long_form import LongColumns
from gru_training.data.time_options import Duplicates, Resample, TimeOptions
from gru_training.errors import ConfigError
from gru_training.search_ranges import Floats, Integers, OneOf
from gru_training.tables.file_form import TextFormat

_LONGEST_SEGMENT = 48
_MOST_EMBEDDED = 32
"""Number of targets above which a network has no vector for each."""

ROUNDING_ERRORS = {"mse": 1e-9, "mae": 3e-5}
"""Errors of an exact forecast by measure, in units of the training part's standard deviation: as
float32 rounds. Smaller ones say nothing.
"""


@dataclass(frozen=True)
class ForecasterConfig:
    """Settings of the network: its inputs, its decoder, its loss."""

    architecture: Annotated[Literal["segment", "one_shot"], OneOf(("segment", "one_shot"))] = (
        "segment"
    )
    """segment: GRU over segments, output segments in parallel (SegRNN); one_shot: GRU over the
    steps, then all horizons at once."""
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
    """Loss that training minimises, on standardised values, and that the weights of a combination
    make small; quantile: the pinball loss of all levels, and the absolute error of the median;
    poisson, negative_binomial: for counts, the deviance of these distributions."""
    intervals: tuple[float, ...] = (0.8, 0.95)
    """Shares of the values that the intervals around a forecast are to hold."""

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels of the quantiles that bound the intervals, ascending, and .5 for the forecast."""
        tails = sorted(round((1 - share) / 2, 9) for share in self.intervals)
        return (*tails, 0.5, *(round(1 - tail, 9) for tail in reversed(tails)))

    @property
    def measure(self) -> Literal["mse", "mae"]:
        """Name of the error by which forecasts are judged: absolute if medians are learned."""
        return "mae" if self.loss in ("mae", "quantile") else "mse"

    @property
    def streams(self) -> bool:
        """True if the model can answer tick by tick: no input depends on later ticks."""
        causal = self.normalisation in ("none", "difference")
        return self.architecture == "one_shot" and causal and not self.linear_skip

    def for_series(self, lookback: int, season: int, targets: int) -> "ForecasterConfig":
        """Return the settings with all values that follow from the series.

        Args:
            lookback: Steps read, L.
            season: Steps of one season.
            targets: Columns to forecast, K.
        """
        segment, embedding = self.segment, self.channel_embedding
        if segment is None:
            segment = _segment(lookback, season)
        if embedding is None:
            embedding = targets <= _MOST_EMBEDDED
        return replace(self, segment=segment, channel_embedding=embedding)

    def require_lookback(self, steps: int) -> None:
        """Raise ConfigError if a segment is longer than the look-back."""
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
    """Sizes and columns of a forecaster's input and output."""

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
    """Choose the segment: the most seasons, or the longest part of one, that fit several times."""
    most = min(_LONGEST_SEGMENT, lookback // 5)
    if season <= most and season > 1:
        return most // season * season
    longest = max(1, min(_LONGEST_SEGMENT, lookback // 3))
    part = max(steps for steps in range(1, longest + 1) if season % steps == 0)
    return part if 4 * part > longest else max(1, lookback // 8)


Deliver = Literal[
    "combination", "network", "ridge", "smoothing", "ets", "theta", "seasonal-naive", "last-value"
]


@dataclass(frozen=True)
class CombinationConfig:
    """The delivered forecaster: the network alone, or a weighted mean with simple ones."""

    combine: bool = True
    """Deliver a weighted mean of the network, of networks that learn the residuals of a ridge
    regression, of ridge regressions, exponential smoothing and the last season; the weights are
    those that do best on validation windows. --no-combine delivers the network alone. A network
    that can answer tick by tick always stands alone."""
    deliver: Deliver = "combination"
    """What forecasts and exports use: the weighted mean of all that are compared, or those of one
    kind alone, of several the mean that does best; ets and theta are compared on short series."""
    networks: int = 1
    """Networks of each kind that are trained, with initial weights of their own, for a mean."""

    refit: bool = True
    """Train further on all rows, for half of the epochs that did best, for forecasts and
    exports; the report measures the training before."""

    def __post_init__(self) -> None:
        require_at_least("--networks", self.networks, 1)
        if not self.combine and self.deliver not in ("combination", "network"):
            raise ConfigError(
                f"--deliver {self.deliver} needs --combine, which compares the network with simple "
                "forecasters"
            )


VALIDATION_FRACTION, TEST_FRACTION = 0.1, 0.2
Transform = Literal["auto", "none", "nonnegative", "log1p", "boxcox"]
_CALENDAR = ("auto", "hour", "weekday", "month", "year")
_OptionalCount = Annotated[int | None, tyro.conf.arg(metavar="INT")]
_OptionalShare = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]


@dataclass(frozen=True)
class SeriesConfig:
    """Settings of the data and of what to forecast."""

    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Your table with a time column: CSV, TSV, JSON lines or list (.gz, .zst), Parquet, Arrow,
    Excel; default: the weekly CO2 series of Mauna Loa."""
    time_column: OptionalName = None
    """Column with the time; detected if called date, time, timestamp, ..., or if it holds dates."""
    time_format: Annotated[str | None, tyro.conf.arg(metavar="FORMAT")] = None
    """How times are written, such as %d.%m.%Y, or steps, excel, days, s, ms, us or ns for numbers;
    detected where it is unambiguous."""
    separator: OptionalName = None
    """Character between the columns of a CSV, such as ';', or tab; detected."""
    encoding: OptionalName = None
    """Encoding of a text file, such as cp1252 or utf-16; detected: UTF-8, else Windows-1252."""
    id_column: OptionalName = None
    """Column with the name of the series, in a file with a row for each series and time; detected
    if called unique_id, series_id or item_id."""
    value_column: OptionalName = None
    """Column to forecast, in a file with a row for each series and time; detected if called y,
    value, sales, ... or if there is no other."""
    target: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Columns to forecast; the others are then inputs only, which --no-channel-independent reads.
    Default: all but those of --future and --past. Of a file with a row for each series and time
    either the column of values or some of the series."""
    future: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Columns whose values are also known for the steps ahead (weather forecasts, prices,
    holidays). Each forecast needs them for its steps (--future of gru-train forecast). They are
    not forecast themselves."""
    past: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Columns that are known up to the present only, and not forecast: inputs of the network, which
    reads all columns together then, as with --no-channel-independent."""
    static: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Further table, with a row for each series of a table in long form: its name, and columns of
    numbers or categories, by which the effects of known inputs may differ."""
    timezone: OptionalName = None
    """Time zone of the times, such as Europe/Berlin, so that days with 23 or 25 hours have no gap
    and no repetition; forecasts are in its local time."""
    frequency: OptionalName = None
    """Spacing of the series, as pandas names it (h, 15min, D, B, W-SUN, MS, ...); times off it are
    moved to the nearest step. Default: the one that most rows have."""
    duplicates: Duplicates = "error"
    """Which value to keep if several rows have the same time; error refuses them."""
    resample: Resample = "none"
    """Combine finer rows to steps of --frequency by their mean, sum, first, last, min or max."""
    drop_bad: bool = False
    """Leave out rows with repeated or unreadable times or off the spacing, and columns that never
    vary; read cells that are no numbers as missing."""
    sort_rows: bool = False
    """Put rows in the order of their times, where they are not."""
    calendar: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Inputs made of the times, which are known of the steps ahead: hour, weekday, month or year,
    or auto for those that suit the spacing; none. Exported models make them of a timestamp."""
    holidays: OptionalName = None
    """Country whose public holidays are such an input, such as DE, or DE-BY for a part of it."""
    lookback: _OptionalCount = None
    """Steps read; default: what does best on validation windows, with --no-combine three
    seasons."""
    horizon: _OptionalCount = None
    """Steps forecast; default: one season, or a quarter of the rows where that is less."""
    season: _OptionalCount = None
    """Steps per season, for the seasonal baselines; default: by the frequency."""
    transform: Transform = "auto"
    """Transform of targets without negative values: nonnegative forecasts nothing below zero; log1p
    learns log(1 + value), boxcox a power with the exponent under which seasons vary alike (Guerrero
    1993), and neither forecasts anything below zero. auto: what does best on validation windows,
    nonnegative in place of none of whole numbers and where values often are zero; none with
    --no-combine."""
    validation_fraction: _OptionalShare = None
    """Share of the rows, next to last, for choosing the best epoch; default: the published
    borders of a known set, else 0.1, or more of a series with fewer than forty horizons."""
    test_fraction: _OptionalShare = None
    """Share of the rows, the last ones, for the final test; default: the published borders of a
    known set, else 0.2."""

    def __post_init__(self) -> None:
        for flag, steps in (
            ("--lookback", self.lookback),
            ("--horizon", self.horizon),
            ("--season", self.season),
        ):
            if steps is not None:
                require_at_least(flag, steps, 1)
        for name in ("future", "past", "calendar"):
            split = [each.strip() for text in getattr(self, name) for each in text.split(",")]
            object.__setattr__(self, name, tuple(filter(None, split)))
        if self.calendar == ("none",):
            object.__setattr__(self, "calendar", ())
        unknown = [name for name in self.calendar if name not in _CALENDAR]
        if unknown or (len(self.calendar) > 1 and "auto" in self.calendar):
            raise ConfigError(
                f"--calendar must be auto, none or some of {', '.join(_CALENDAR[1:])}, got "
                f"{' '.join(self.calendar)}"
            )
        whole = ("--target", self.target), ("--future", self.future), ("--past", self.past)
        for flag, names in whole:
            if len(set(names)) < len(names):
                raise ConfigError(f"{flag} must name each column once, got {' '.join(names)}")
        for (flag, names), (other, others) in itertools.combinations(whole, 2):
            if both := sorted(set(names) & set(others)):
                raise ConfigError(f"{flag} and {other} must name different columns, got {both[0]}")
        if self.static is not None and not (self.future or self.calendar or self.holidays):
            raise ConfigError("--static needs known inputs: --future, --calendar or --holidays")
        require_split(*self.fractions)
        self.times, self.text_format  # noqa: B018  refuse what contradicts itself
        if self.data is None and (self.time_column or self.time_format):
            raise ConfigError("--time-column and --time-format need --data")

    @property
    def times(self) -> TimeOptions:
        """Options for times as people have them."""
        return TimeOptions(self.timezone, self.frequency, self.duplicates, self.resample)

    @property
    def text_format(self) -> TextFormat:
        """Form of text files, where it is set."""
        return TextFormat(self.separator, self.encoding)

    @property
    def long(self) -> LongColumns:
        """The columns of a file with a row for each series and time."""
        return LongColumns(self.id_column, self.value_column, self.future, targets=self.target)

    @property
    def fractions(self) -> tuple[float, float]:
        """Shares of validation and test where no borders are published."""
        validation, test = self.validation_fraction, self.test_fraction
        return (
            VALIDATION_FRACTION if validation is None else validation,
            TEST_FRACTION if test is None else test,
        )


@dataclass(frozen=True)
class ForecastingTrainingConfig(TrainingConfig):
    """The search for the weights: Adam, clipped gradients, early stopping."""

    epochs: int = 30
    """Maximum number of passes over the training windows."""
    patience: int = 5
    """Stop after this many epochs without a lower validation loss."""
    batch_size: Annotated[int, OneOf((32, 64, 128))] = 64
    """Windows per step."""
    schedule: Literal["constant", "cosine", "decay"] = "decay"
    """Keep the learning rate constant; lower it to zero over --epochs along half a cosine; or
    multiply it by 0.8 after every epoch from the fourth."""
    warm_start: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Begin with the scale and the networks of this run, which must have learned from no row that
    is held out now."""
    train_stride: _OptionalCount = None
    """Train on every n-th window only, on different windows in each epoch; default: on all, or
    with --combine on so many that an epoch has at most 150 steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train_stride is not None:
            require_at_least("--train-stride", self.train_stride, 1)


@dataclass(frozen=True)
class ForecastingConfig:
    """Train a GRU that forecasts one or more series, and write a run directory.

    With --data it reads your own table: a header, a column with evenly spaced times, and one or
    more columns of numbers, in which empty cells are missing values. The files of the public sets
    ETT, weather and exchange rate are recognised by name and split at their published borders.
    Without --data it learns the weekly CO2 of Mauna Loa, which ships with statsmodels, in about a
    minute on two cores.
    Ctrl-C ends training and keeps the best epoch so far.
    """

    preset: OptionalName = None
    """Start from the settings of this name, such as co2, or etth1-96 of the results table; other
    flags override them."""
    data: SeriesConfig = field(default_factory=SeriesConfig)
    """What to learn from, and what to forecast."""
    model: ForecasterConfig = field(default_factory=ForecasterConfig)
    """The network: what it reads, how it decodes, what it minimises."""
    combination: CombinationConfig = field(default_factory=CombinationConfig)
    """The delivered forecaster: the network alone, or a weighted mean with simple ones."""
    training: ForecastingTrainingConfig = field(default_factory=ForecastingTrainingConfig)
    """The search for the weights: Adam, clipped gradients, early stopping."""
    run: RunConfig = field(default_factory=RunConfig)
    """Where the result goes."""


_OptionalFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class ForecastConfig:
    """Forecast the next steps of a series, with their times and prediction intervals.

    The forecast begins after the series that the run was trained on, or after newer values of
    the same columns in --data. Columns are found by name, in any order; rows at the end that
    have no value yet are what is to be forecast. A file may have fewer rows than the model reads if
    it continues the run's own series.

    A run that was trained with --future reads those columns of the steps that it forecasts: from
    the rows at the end, or from a file of their own (--future). The forecast covers as many steps
    as they are known for.

    The forecast has a row for each column and time: unique_id, ds, forecast, and the bounds lo-80,
    hi-80, lo-95 and hi-95. Without --output it is printed.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run directory of `gru-train forecasting`."""
    data: _OptionalFile = None
    """Newer values, a table as for training."""
    future: _OptionalFile = None
    """Known inputs of the steps to forecast, a table with their times, where the run was
    trained with --future."""
    output: _OptionalFile = None
    """File for the forecast: .csv, .tsv, .jsonl (plain or .gz) or .parquet."""
    horizon: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Steps to forecast; by default all that the model was trained for, which is the most."""
    overwrite: bool = False
    """Replace the output if it is there already."""
    debug: bool = False
    """Show TensorFlow's messages, and where an error arose."""


Metric = Literal["mse", "mae", "mase", "rmsse", "smape", "crps"]


@dataclass(frozen=True)
class BacktestConfig:
    """Measure a forecasting run at several past moments, one after the other.

    The test part is split into folds that do not overlap in time. For each fold, the ridge
    regression and the exponential smoothing are fitted again on all rows before it; with --refit
    the run's model is, too. Rows that the data have gained since belong to the last folds.
    """

    run_path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run directory of `gru-train forecasting`."""
    folds: int = 5
    """Number of folds to split the test part into, in order of time."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """File with the series; default: the file that the run was trained on."""
    name: OptionalName = None
    """Name of the new folder beside the run; default: the run's with -backtest."""
    refit: bool = False
    """Train the run's model again for each fold, on all rows before it."""
    warm_start: bool = False
    """With --refit, begin with the networks of the fold before (the first fold with the run's),
    and train them for half of the epochs."""
    gap: int = 0
    """Rows before each fold that no model is fitted on, as if they came too late for it; they are
    read for forecasts."""
    metric: Metric = "mse"
    """Metric of the table and the picture; backtest.json has all of them. The CRPS exists for the
    run's model alone."""
    step: int = 1
    """Forecast from every n-th time of a fold only."""
    debug: bool = False
    """Show TensorFlow's messages, and the traceback of an error."""

    def __post_init__(self) -> None:
        require_at_least("--folds", self.folds, 1)
        require_at_least("--step", self.step, 1)
        require_at_least("--gap", self.gap, 0)
        if self.warm_start and not self.refit:
            raise ConfigError("--warm-start needs --refit")
