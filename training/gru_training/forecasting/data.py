"""A series prepared for training: split by time, scaled by its training rows, cut into windows.

Static covariates, the properties of each series of a panel that do not depend on time, are read
here too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gru_training.data.digest import data_digest
from gru_training.data.long_form import ID_COLUMNS, input_column, wide_columns
from gru_training.data.problems import Problems
from gru_training.data.series import Series
from gru_training.errors import DataError, ForeignDataError
from gru_training.forecasting.config import ForecastShape, SeriesConfig
from gru_training.forecasting.known import MAX_RELATIVE_ERROR, fit_effect
from gru_training.forecasting.preprocessor import SeriesPreprocessor, steady_exponent
from gru_training.forecasting.series_check import series_problems, usable_series, window_origins
from gru_training.forecasting.sets import Borders, borders_of, load_series, published_borders
from gru_training.forecasting.windows import Windows
from gru_training.tables.file_form import DETECTED_FORMAT, TextFormat
from gru_training.tables.numbers import MISSING, Numbers
from gru_training.tables.rows import cell_text, read_rows

_LEAST_OF_KIND = 2
"""Fewest series of a category that is distinguished."""
_MOST_KINDS = 30


class Traits(NamedTuple):
    """Static covariates of K series."""

    names: tuple[str, ...]
    """Names of the columns of the file that vary."""
    values: np.ndarray
    """(K, S) float64 around 0: numbers standardised, and 1 and 0 for each category, centred."""
    absent: tuple[str, ...]
    """Series without a row, which count as average."""


def read_traits(
    path: Path, id_column: str | None, ids: Sequence[str], given: TextFormat = DETECTED_FORMAT
) -> Traits:
    """Read a table with a row for each series.

    A column of numbers is standardised over the series. Any other column has categories; those of
    at least two series count, at most the 30 most frequent.

    Args:
        path: The file.
        id_column: Column with the names of the series; by default found as in their table.
        ids: The K series.
        given: Format of the text, as far as it is known.

    Raises:
        ForeignDataError: There is no column with the names of the series, or nothing else.
        DataError: The file cannot be read, or has a series twice; names the line.
    """
    problems = Problems(str(path))
    rows: dict[str, dict[str, str]] = {}
    table = read_rows(path, given, problems.bad_row)
    problems.unit = table.form.unit
    header, read = table.with_columns()
    known = {each.strip().lower(): each for each in header}
    name = id_column or next((known[each] for each in ID_COLUMNS if each in known), None)
    if name is None or name not in header or len(header) < 2:
        raise ForeignDataError(
            f"--static: {path}: expected a column with the names of the series "
            f"({id_column or 'unique_id; see --id-column'}) and others; its columns are "
            f"{', '.join(header)}"
        )
    for place, row in read:
        cells = {key: (cell_text(row.get(key)) or "").strip() for key in header}
        if cells[name] in rows:
            message = f"expected each series once, got {cells[name]!r} again"
            problems.bad_row("repeated", place, message, name)
        rows.setdefault(cells[name], cells)
    problems.close_rows()
    problems.raise_errors()
    columns = [column for column in header if column != name] if rows else []
    found = [
        (column, _encoded([rows.get(of, {}).get(column, "") for of in ids], table.form.separator))
        for column in columns
    ]
    used = [(column, values) for column, values in found if values.shape[1]]
    values = np.column_stack([np.empty((len(ids), 0)), *(values for _, values in used)])
    return Traits(
        tuple(column for column, _ in used), values, tuple(of for of in ids if of not in rows)
    )


def _encoded(cells: Sequence[str], separator: str) -> np.ndarray:
    """Encode the cells of a column as (K, S) around 0; without any S if it does not vary."""
    missing = np.array([cell.lower() in MISSING for cell in cells])
    numbers_of = Numbers(separator)
    try:
        numbers = np.array([numbers_of.read(cell) for cell in cells])
    except ValueError:
        kinds = Counter(cell for cell, gone in zip(cells, missing, strict=True) if not gone)
        told = [kind for kind, count in kinds.most_common(_MOST_KINDS) if count >= _LEAST_OF_KIND]
        made = np.array([[float(cell == kind) for kind in told] for cell in cells])
        made = made.reshape(len(cells), len(told))
        return np.asarray(np.where(missing[:, np.newaxis], 0.0, made - made[~missing].mean(axis=0)))
    if not np.isfinite(numbers).any() or np.nanstd(numbers) == 0:
        return np.empty((len(cells), 0))
    standardised = (numbers - np.nanmean(numbers)) / np.nanstd(numbers)
    return np.asarray(np.nan_to_num(standardised)[:, np.newaxis])


@dataclass(frozen=True)
class ForecastingData:
    """A series with its split and scale."""

    series: Series
    borders: Borders
    shape: ForecastShape
    season: int
    preprocessor: SeriesPreprocessor

    @property
    def plain(self) -> "ForecastingData":
        """The data on the scale on which errors are measured: without powers and known inputs."""
        if not self.preprocessor.transformed.any() and self.preprocessor.known is None:
            return self
        return replace(self, preprocessor=self.preprocessor.plain)

    @property
    def target_columns(self) -> tuple[str, ...]:
        """The names of the K columns that are forecast."""
        return tuple(self.series.columns[column] for column in self.shape.targets)

    @property
    def published(self) -> bool:
        """True if the split is that of published results on a public data set."""
        return self.borders == published_borders(self.series)

    @property
    def digest(self) -> str:
        """The digest that identifies the series."""
        return data_digest(self.series.contents())

    @cached_property
    def raw(self) -> np.ndarray:
        """The series (rows, C) as float32."""
        return self.series.values.astype(np.float32)

    @cached_property
    def standardised_targets(self) -> np.ndarray:
        """The standardised targets (rows, K) float32 without the effects of known inputs.

        NaN marks missing values.
        """
        targets = self.series.values[:, list(self.shape.targets)]
        standardised = self.preprocessor.standardise_targets(targets).astype(np.float32)
        return standardised if self.effects is None else standardised - self.effects

    @cached_property
    def effects(self) -> np.ndarray | None:
        """The effects (rows, K) float32 of known inputs on the targets; None without any."""
        return self.preprocessor.series_effects(self.raw)

    def noting(self, notes: tuple[str, ...]) -> "ForecastingData":
        """Return the data with further remarks on the series."""
        return replace(self, series=replace(self.series, notes=(*self.series.notes, *notes)))

    def trained_on(self, rows: int) -> "ForecastingData":
        """Return the data with this many first rows to train on; the other parts stay."""
        return replace(self, borders=self.borders._replace(trained=rows))

    def windows(self, part: str, lookback: int | None = None) -> Windows:
        """Return every window whose forecast steps lie in a part and have any known value.

        The inputs of a window may reach back before its part, so a part of n rows has n - H + 1
        windows; those of the training part begin where there are enough rows to read.

        Args:
            part: `train`, `validation` or `test`.
            lookback: Steps read; those of the shape by default.
        """
        begin, end = self.borders.part(part)
        if part == "train":  # the last season may be longer, see `usable_series`
            most = max(1, end - self.shape.horizon)
            lookback = min(lookback or self.shape.lookback, most)
        return self.windows_between(begin, end, lookback)

    def windows_between(self, begin: int, end: int, lookback: int | None = None) -> Windows:
        """Cut `windows` with the forecast steps in rows `begin` to `end - 1`."""
        lookback, horizon = lookback or self.shape.lookback, self.shape.horizon
        origins = window_origins(self.standardised_targets, begin, end, lookback, horizon)
        return Windows(
            self.raw, self.standardised_targets, origins, lookback, horizon, self.effects
        )


def read_series(config: SeriesConfig) -> Series:
    """Read the series that the settings name.

    Raises:
        DataError: The series cannot be read; the message says why.
    """
    problems = series_problems(config)
    series = load_series(config, problems)
    problems.raise_errors()
    return series


def prepare(
    series: Series,
    config: SeriesConfig,
    scale: SeriesPreprocessor | None = None,
    planned: bool = False,
) -> ForecastingData:
    """Split and scale a series that has been read.

    Args:
        series: Series as it was read.
        config: The split, the steps and the columns to forecast.
        scale: Scale of its columns; by default that of the training rows.
        planned: Whether the look-back is that of a plan, as in `usable_series`.

    Raises:
        DataError: The rows are too few, or a column is constant.
    """
    problems = series_problems(config, series)
    series, shape, season = usable_series(series, config, problems, planned)
    problems.raise_errors()
    borders = borders_of(series, config)
    if scale is not None:
        return ForecastingData(_noted(series, problems), borders, shape, season, scale)
    rows = series.values[: borders.train]
    transformed, exponent = None, 0.0
    if config.transform not in ("auto", "none"):
        transformed = never_negative(series.values[: borders.validation], shape.targets)
        if config.transform == "nonnegative":
            exponent = 1.0
        elif config.transform == "boxcox":
            exponent = steady_exponent(rows[:, transformed], season)
    preprocessor = SeriesPreprocessor.fit(
        rows, shape.targets, transformed, exponent, _columns_of_inputs(series)
    )
    if config.future or series.calendar.columns:
        preprocessor, note = _with_known(series, config, borders, season, shape, preprocessor)
        problems.note(note)
    return ForecastingData(
        _noted(series, problems),
        borders,
        shape,
        season,
        preprocessor,
    )


def _noted(series: Series, problems: Problems) -> Series:
    return replace(series, notes=(*series.notes, *problems.notes))


def _with_known(
    series: Series,
    config: SeriesConfig,
    borders: Borders,
    season: int,
    shape: ForecastShape,
    preprocessor: SeriesPreprocessor,
) -> tuple[SeriesPreprocessor, str]:
    """Add the effects of the known inputs to the scale; also returns a note on their value."""
    values = series.values[: borders.validation]
    targets_of = [series.columns[target] for target in shape.targets]
    made = list(series.calendar.columns)
    names = [*config.future, *made]
    columns = [series.column(name) for name in ([] if series.panel else names)]
    if series.panel:
        of_series = (wide_columns([name], series.inputs, valued=False) for name in targets_of)
        columns = _places(series, [name for own in of_series for name in (*own, *made)])
    inputs = (values[:, columns] - preprocessor.mean[columns]) / preprocessor.deviation[columns]
    if series.panel:
        inputs = inputs.reshape(len(inputs), len(shape.targets), -1)
    targets = preprocessor.standardise_targets(values[:, list(shape.targets)])
    traits, said = None, ""
    if config.static is not None:
        traits, said = _traits(series, config, targets_of)
    parts = borders.train, season, shape.horizon, traits
    known, errors = fit_effect(targets, inputs, columns, *parts)
    called = ", ".join(names)
    compared = "validation mean squared error of a ridge regression"
    if known is None:
        return preprocessor, (
            f"known inputs {called}: not read, as no forecast is better with them ({compared} "
            f"without them {errors[0]:.4f}, with them at least {MAX_RELATIVE_ERROR:.0%} of that)"
        )
    return preprocessor.with_known(known), (
        f"known inputs {called}: {compared} {errors[0]:.4f} without them, {errors[1]:.4f} with them"
        + (f"; the effect is {known.whose}" if known.whose else "")
        + said
    )


def _traits(
    series: Series, config: SeriesConfig, names: Sequence[str]
) -> tuple[np.ndarray | None, str]:
    """Read static covariates of the series, with notes."""
    assert config.static is not None
    if not series.panel:
        raise DataError(
            f"--static: {series.source} has no column with the names of series; static covariates "
            "are read of tables with a row for each series and time"
        )
    found = read_traits(config.static, config.id_column, names, config.text_format)
    if not found.names:
        return None, "; no static covariate varies"
    said = f"; static covariates: {', '.join(found.names)}"
    if found.absent:
        said += f", not known of {len(found.absent)} series, as {found.absent[0]!r}"
    return found.values, said


def _columns_of_inputs(series: Series) -> list[list[int]]:
    """Return the columns of each input of a panel, for all series."""
    columns = [name for name in series.columns if name not in series.input_columns]
    of_input = [[input_column(name, each) for each in columns] for name in series.inputs]
    there = set(series.columns)
    return [_places(series, [each for each in names if each in there]) for names in of_input]


def _places(series: Series, names: Sequence[str]) -> list[int]:
    place = {name: number for number, name in enumerate(series.columns)}
    return [place[name] for name in names]


def never_negative(rows: np.ndarray, targets: tuple[int, ...]) -> np.ndarray:
    """Find the forecast columns without a negative value, (C,) bool."""
    found = np.zeros(rows.shape[1], bool)
    columns = list(targets)
    found[columns] = np.nanmin(rows[:, columns], axis=0) >= 0
    return found
