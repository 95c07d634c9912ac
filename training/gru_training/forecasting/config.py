"""The settings of the forecasting pipeline; see `gru_training.config`."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from gru_training.config import (
    OptionalName,
    RunConfig,
    TrainingConfig,
    require_at_least,
    require_split,
)
from gru_training.data.long_form import LongColumns
from gru_training.data.time_options import Duplicates, Resample, TimeOptions
from gru_training.errors import ConfigError
from gru_training.forecasting.combination.config import CombinationConfig
from gru_training.forecasting.network.config import ForecasterConfig
from gru_training.search_ranges import OneOf
from gru_training.tables.file_form import TextFormat

VALIDATION_FRACTION, TEST_FRACTION = 0.1, 0.2
Transform = Literal["auto", "none", "nonnegative", "log1p", "boxcox"]
_CALENDAR = ("auto", "hour", "weekday", "month", "year")
_OptionalCount = Annotated[int | None, tyro.conf.arg(metavar="INT")]
_OptionalShare = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]


@dataclass(frozen=True)
class SeriesConfig:
    """What to learn from, and what to forecast."""

    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Your table with a time column: CSV, TSV, JSON lines or list (.gz, .zst), Parquet, Arrow,
    Excel; default: the weekly CO2 series of Mauna Loa."""
    time_column: OptionalName = None
    """Column with the time; detected if called date, time, timestamp, month, ..."""
    time_format: Annotated[str | None, tyro.conf.arg(metavar="FORMAT")] = None
    """How times are written, such as %d.%m.%Y; detected where it is unambiguous."""
    separator: OptionalName = None
    """Character between the columns of a CSV, such as ';', or tab; detected."""
    encoding: OptionalName = None
    """Encoding of a text file, such as cp1252 or utf-16; detected: UTF-8, else Windows-1252."""
    id_column: OptionalName = None
    """Of a file with a row for each series and time, the column with the name of the series;
    detected if called unique_id, series_id or item_id."""
    value_column: OptionalName = None
    """Of such a file, the column to forecast; detected if called y, value, sales, ... or if there
    is no other."""
    target: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Columns to forecast; the others are then inputs only, which --no-channel-independent reads.
    Default: all but those of --future and --past. Of a file with a row for each series and time
    either the column of values or some of the series."""
    future: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Columns whose values are known of the steps ahead as well (weather forecasts, prices,
    holidays): forecasts read them there, and are made of them (--future of gru-train forecast).
    They are not forecast themselves."""
    past: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ()
    """Columns that are known up to the present only, and not forecast: inputs of the network, which
    reads all columns together then, as with --no-channel-independent."""
    static: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Of a table in long form another with a row for each series: its name, and columns of
    numbers or categories, by which the effects of known inputs may differ."""
    timezone: OptionalName = None
    """Time zone of the times, such as Europe/Berlin; they are converted to UTC, so that days with
    23 or 25 hours have no gap and no repetition."""
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
    """Steps forecast; default: one season, or a quarter of the rows where those are fewer than
    three seasons."""
    season: _OptionalCount = None
    """Steps per season, for the seasonal baselines; default: by the frequency."""
    transform: Transform = "auto"
    """Of targets without negative values: nonnegative forecasts nothing below zero; log1p learns
    log(1 + value), boxcox a power with the exponent under which seasons vary alike (Guerrero 1993),
    and neither forecasts anything below zero. auto: what does best on validation windows,
    nonnegative in place of none where values often are zero; none with --no-combine."""
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
        """What is done to times as people have them."""
        return TimeOptions(self.timezone, self.frequency, self.duplicates, self.resample)

    @property
    def text_format(self) -> TextFormat:
        """How text files are written, where that is set."""
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
    """How the weights are found: Adam, clipped gradients, early stopping."""

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
    distribute: Literal["none", "mirrored", "workers"] = "none"
    """Split every batch among this machine's GPUs, or among the processes that the environment
    variable TF_CONFIG names; the first of these writes the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train_stride is not None:
            require_at_least("--train-stride", self.train_stride, 1)


@dataclass(frozen=True)
class ForecastingConfig:
    """Train a GRU forecaster and write a run directory.

    Without --data it learns the weekly CO2 of Mauna Loa, which ships with statsmodels, in about a
    minute on two cores. With --data it reads your CSV file: a header, a column with evenly spaced
    times, and one or more columns of numbers, in which empty cells are missing values. The files
    of the public sets ETT, weather and exchange rate are known by name and split at their
    published borders.
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
    """What is delivered: the network alone, or a weighted mean of it and simple forecasters."""
    training: ForecastingTrainingConfig = field(default_factory=ForecastingTrainingConfig)
    """How the weights are found: Adam, clipped gradients, early stopping."""
    run: RunConfig = field(default_factory=RunConfig)
    """Where the result goes."""
