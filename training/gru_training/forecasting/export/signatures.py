"""The signatures of an exported forecaster, with raw units on both sides.

B series, T steps, C columns read, F of them known for the steps ahead, H horizons, K columns
forecast, Q levels, S the size of the streaming state, R parallel GRUs (K with
`channel_independent`, otherwise 1), U units.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gru_serving.preprocessing.calendar import AddCalendar, AddFutureCalendar
from gru_serving.preprocessing.checks import (
    RequireFinite,
    RequireRows,
    RequireShape,
    RequireSome,
    RequireSteps,
    RequireValues,
)
from gru_serving.preprocessing.description import Signature, Step
from gru_serving.preprocessing.series import (
    AddEffects,
    CalibrateQuantiles,
    EndSeries,
    FindColumns,
    Intervals,
    NumberSteps,
    OrderColumns,
    Restore,
    SeriesColumns,
    Standardise,
    StandardiseTick,
    TakeLast,
    TakePlaces,
)
from gru_training.forecasting.config import ForecasterConfig, ForecastShape
from gru_training.forecasting.export.calendar import CalendarInputs
from gru_training.forecasting.export.one_series import OneSeries
from gru_training.forecasting.intervals import calibration
from gru_training.forecasting.network import ForecasterSteps
from gru_training.forecasting.preprocessor import SeriesPreprocessor
from gru_training.servable import DescribedModule, Network

_ANSWERS = {"forecast": "forecast", "quantiles": "quantiles"}
Specs = dict[str, tf.TensorSpec]


class ForecastingSignatures(DescribedModule):
    """A forecaster in raw units.

    `serving_default`, from `history` (B, T, C) float32, NaN = missing, of which a model that
    streams reads all and any other the last L steps; of a model that reads known inputs also
    `future` (B, H, F), those of the steps ahead, NaN = as in the step before; of one that reads the
    calendar `timestamp` (B,), the time of the last step of each history, as `2024-05-31 13:00:00`;
    to `forecast` (B, H, K) and `quantiles` (B, H, K, Q). `by_name` has columns in any order, among
    which there may be others, with their names as `columns` (B, N) and `future_columns` (B, M);
    `columns` says what to send (`FindColumns`), and `one_series` forecasts series that the model
    never saw, from `history` (B, T).

    `gates` shows what the gates did at each segment or step: `update_gate`, `reset_gate` and
    `state` (B, N, R, U); `end` (B, N), the step of the history, from 0, with which each ends;
    `values` (B, T', K) of the columns forecast in the T' steps read, missing ones filled; of a
    model that streams also `forecast` (B, N, H, K), the answer after each step. It is there for the
    architectures segment and one_shot.

    `step` reads on, of models that stream: `value` (B, C), the next tick in raw units, NaN =
    missing: the last value seen counts again. Before a column's first value the training mean does;
    there `serving_default`, which sees the value that follows, answers differently. `state` (B, S)
    is zeros at the beginning, then what the step before returned.

    Args:
        model: Model from standardised windows to forecasts, (B, L, C) to (B, H, K, Q or 1).
        shown: The network, within it or itself, whose gates can be shown, and the shape that it
            was built with (`gru_training.forecasting.network.build_forecaster`); None: no
            network has a part in the forecasts.
        config: Settings of the network.
        shape: Shape of the model.
        preprocessor: Scale of the run.
        columns: The C names of the columns read, for error messages.
        levels: The Q levels, ascending, with .5.
        offsets: (H, K, Q) standardised, of
            `gru_training.forecasting.intervals.interval_offsets`.
        panel: Whether columns may be without any value in the steps read, as of a series that has
            ended: their forecasts are NaN then.
        one_series: Forecaster of series that the model never saw; None: there is no such signature.
        calendar: Calendar inputs, the last of the columns, which callers lack; None: they have all.

    Attributes:
        read: Numbers of the columns without which there is no forecast.
        known: Numbers of the columns that a caller sends of the steps ahead.
        least_steps: Least number of steps of a history.
        reads_all: Whether all of a history is read.
        state_size: S; 0 where the model does not stream.
    """

    def __init__(
        self,
        model: keras.Model,
        shown: tuple[keras.Model, ForecastShape] | None,
        config: ForecasterConfig,
        shape: ForecastShape,
        preprocessor: SeriesPreprocessor,
        columns: Sequence[str],
        levels: Sequence[float],
        offsets: np.ndarray,
        panel: bool = False,
        one_series: OneSeries | None = None,
        calendar: CalendarInputs | None = None,
    ) -> None:
        streams = shown is not None and config.streams
        steps = None if shown is None else ForecasterSteps(shown[0], config, shown[1])
        given = shape.channels - (len(calendar.table.columns) if calendar else 0)
        known = tuple(column for column in preprocessor.future_columns if column < given)
        alone = shown is None or config.channel_independent
        read = (
            tuple(sorted({*shape.targets, *known}))
            if known and alone
            else tuple(shape.targets)
            if alone
            else tuple(range(given))
        )
        size = steps.state_size if steps is not None and streams else 0
        described = _Describer(
            shape,
            None if streams else shape.lookback,
            given,
            preprocessor,
            SeriesColumns(tuple(columns[:given]), tuple(shape.targets), read, known),
            calibration(offsets, levels),
            panel,
            calendar,
        )
        signatures, inputs = described.forecasts()
        networks = {"forecast": Network(_forecasts(model, steps, streams), ["standardised"])}
        weights = [variable.value for variable in model.variables]
        if one_series is not None:
            signatures["one_series"], inputs["one_series"] = described.one_series(one_series)
            networks["one_series"] = Network(
                lambda window: {"answers": one_series.model(window, training=False)}, ["window"]
            )
            weights += [variable.value for variable in one_series.model.variables]
        if steps is not None:
            assert shown is not None
            several = int(shown[0].outputs[0].shape[-1]) > 1
            gates = described.gates(steps.width, streams, several)
            signatures["gates"], inputs["gates"] = gates
            networks["gates"] = Network(partial(_gates, steps), ["standardised"])
        if steps is not None and streams:
            signatures["step"], inputs["step"] = described.step(size)
            networks["step"] = Network(partial(_step, steps), ["tick", "state"])
        super().__init__("forecasting", signatures, inputs, networks, weights)
        self.read, self.known, self.reads_all, self.state_size = read, known, streams, size
        self.least_steps = 1 if streams else shape.lookback


def _forecasts(model: keras.Model, steps: ForecasterSteps | None, streams: bool) -> Any:
    whole = steps.forecast if steps is not None and streams else partial(model, training=False)
    return lambda standardised: {"answers": whole(standardised)}


def _gates(steps: ForecasterSteps, standardised: Any) -> dict[str, Any]:
    shown = steps.open(standardised)._asdict()
    return {**shown, "forecasts": steps.forecasts(standardised)} if steps.streams else shown


def _step(steps: ForecasterSteps, tick: Any, state: Any) -> dict[str, Any]:
    answers, after = steps.advance(tick, state)
    return {"answers": answers, "after": after}


class _Describer:
    """Builds the signatures of a forecaster, each with its inputs.

    Args:
        shape: Shape of the model.
        lookback: Steps read; None for all of a history.
        given: Columns that a caller sends.
        preprocessor: Scale of the run.
        columns: Columns that a caller sends.
        intervals: Calibration of the intervals.
        panel: Whether columns may be without any value.
        calendar: Calendar inputs, if there are any.
    """

    def __init__(
        self,
        shape: ForecastShape,
        lookback: int | None,
        given: int,
        preprocessor: SeriesPreprocessor,
        columns: SeriesColumns,
        intervals: Intervals,
        panel: bool,
        calendar: CalendarInputs | None,
    ) -> None:
        self._shape, self._lookback, self._given = shape, lookback, given
        self._scale, self._columns, self._intervals = preprocessor.scale, columns, intervals
        self._panel, self._calendar = panel, calendar
        self._known = len(columns.known)
        timed = calendar is not None and calendar.read
        self._time = {"timestamp": texts("timestamp", None)} if timed else {}

    def forecasts(self) -> tuple[dict[str, Signature], dict[str, Specs]]:
        """Return `serving_default`, `by_name` and `columns`, and the inputs of each."""
        history = numbers("history", None, None, self._given)
        ahead: Specs = {}
        of_names: Specs = {
            "history": numbers("history", None, None, None),
            "columns": texts("columns", None, None),
        }
        horizon, F = self._shape.horizon, self._known
        read, future = self._history(), self._future()
        ordered: list[Step] = [
            *shapes(of_names),
            OrderColumns("history", "columns", self._columns),
        ]
        if F:
            ahead["future"] = numbers("future", None, horizon, F)
            theirs: Specs = {
                "future": numbers("future", None, horizon, None),
                "future_columns": texts("future_columns", None, None),
            }
            of_names |= theirs
            ordered += shapes(theirs)
            ordered.append(OrderColumns("future", "future_columns", self._columns, True))
        effects = "effects" if self._scale.known is not None else None
        after = [*self._answers(effects)]
        if self._panel:
            last = TakeLast("history", "recent", self._shape.lookback)
            after += [last, EndSeries("recent", tuple(self._shape.targets))]
        names: Specs = {"names": texts("names", None, None)}
        found = ["columns", "place", "needed", "forecast_columns"]
        found += ["future_columns"] if F else []
        signatures = {
            "serving_default": Signature(
                [*shapes({"history": history}), *read, *shapes(ahead), *future],
                "forecast",
                after,
                _ANSWERS,
            ),
            "by_name": Signature([*ordered, *read, *future], "forecast", after, _ANSWERS),
            "columns": Signature(
                [*shapes(names), FindColumns("names", self._columns)],
                None,
                (),
                {name: name for name in found},
            ),
        }
        inputs = {
            "serving_default": {"history": history, **ahead, **self._time},
            "by_name": {**of_names, **self._time},
            "columns": names,
        }
        return signatures, inputs

    def one_series(self, one: OneSeries) -> tuple[Signature, Specs]:
        """Return `one_series`, each series on the scale of its own history."""
        inputs: Specs = {"history": numbers("history", None, None)}
        ahead: Specs = {}
        if one.inputs is not None:
            F = len(one.inputs.mean)
            ahead["past"] = numbers("past", None, None, F)
            ahead["future"] = numbers("future", None, self._shape.horizon, F)
        steps: list[Step] = [*shapes(inputs | ahead)]
        steps += [RequireFinite("history"), RequireSome("history")]
        for name in ahead:
            steps += [RequireFinite(name), RequireRows(name)]
        before, after = one.steps(self._intervals)
        after.append(TakePlaces("quantiles", "forecast", self._intervals.middle))
        return Signature([*steps, *before], "one_series", after, _ANSWERS), inputs | ahead

    def gates(self, width: int, streams: bool, several: bool) -> tuple[Signature, Specs]:
        """Return `gates`.

        Args:
            width: Steps of the history for each step of the network.
            streams: Whether the model streams.
            several: Whether the network answers quantiles.
        """
        inputs = {"history": numbers("history", None, None, self._given), **self._time}
        steps = [*shapes({"history": inputs["history"]}), *self._history()]
        effects = None
        if self._scale.known is not None:
            effects = "past_effects"
            steps.append(AddEffects("whole", None, effects, self._scale))
        after: list[Step] = [
            NumberSteps("history", "state", "end", width),
            TakePlaces("standardised", "values", tuple(self._shape.targets)),
            Restore("values", "values", self._scale, 1, effects),
        ]
        outputs = ["end", "update_gate", "reset_gate", "state", "values"]
        if streams:
            middle = self._intervals.middle if several else 0
            after += [
                TakePlaces("forecasts", "forecast", middle),
                Restore("forecast", "forecast", self._scale, 1),
            ]
            outputs.append("forecast")
        return Signature(steps, "gates", after, {name: name for name in outputs}), inputs

    def step(self, size: int) -> tuple[Signature, Specs]:
        """Return `step`, with a state of this size."""
        value = numbers("value", None, self._shape.channels)
        inputs: Specs = {"value": value, "state": numbers("state", None, size)}
        steps = [*shapes(inputs), RequireFinite("value")]
        steps.append(StandardiseTick("value", "tick", self._scale))
        return Signature(steps, "step", self._answers(None), {**_ANSWERS, "state": "after"}), inputs

    def _history(self) -> list[Step]:
        """Return steps from a checked shape to `whole`, with the calendar, and `standardised`."""
        steps: list[Step] = [RequireSteps("history", self._lookback or 1), RequireFinite("history")]
        read = "history"
        if self._lookback is not None:
            steps.append(TakeLast(read, "read", self._lookback))
            read = "read"
        if not self._panel:
            of = self._columns
            named = tuple(of.names[number] for number in of.read)
            steps.append(RequireValues(read, of.read, named))
        whole = read
        if self._calendar is not None:
            whole = "whole"
            steps += [step for name in self._time for step in self._checked(name)]
            timestamp = "timestamp" if self._time else None
            steps.append(AddCalendar(read, whole, timestamp, self._calendar.table))
        elif self._scale.known is not None:
            whole = "whole"
            steps.append(TakeLast(read, whole, self._shape.lookback))
        return [*steps, Standardise(whole, "standardised", self._scale)]

    def _checked(self, name: str) -> list[Step]:
        return [RequireShape(name, (None,)), RequireRows(name)]

    def _future(self) -> list[Step]:
        """Return steps from a checked shape of known inputs to their `effects`."""
        if self._scale.known is None:
            return []
        steps: list[Step] = []
        if self._known:
            steps += [RequireFinite("future"), RequireRows("future")]
        future = "future"
        if self._calendar is not None and self._time:
            future = "whole_future"
            steps.append(
                AddFutureCalendar(
                    "future" if self._known else None,
                    future,
                    "timestamp",
                    self._shape.horizon,
                    self._calendar.places,
                    self._calendar.order,
                    self._calendar.table,
                )
            )
        return [*steps, AddEffects("whole", future, "effects", self._scale)]

    def _answers(self, effects: str | None) -> list[Step]:
        """Return steps from standardised `answers` to the outputs."""
        return [
            CalibrateQuantiles("answers", "quantiles", self._intervals),
            Restore("quantiles", "quantiles", self._scale, 2, effects),
            TakePlaces("quantiles", "forecast", self._intervals.middle),
        ]


def shapes(inputs: Mapping[str, tf.TensorSpec]) -> list[Step]:
    """Check that inputs have the axes and sizes stated by their signature."""
    return [RequireShape(name, tuple(spec.shape)) for name, spec in inputs.items()]


def numbers(name: str, *shape: int | None) -> tf.TensorSpec:
    """Specify an input of float32."""
    return tf.TensorSpec(shape, tf.float32, name)


def texts(name: str, *shape: int | None) -> tf.TensorSpec:
    """Specify an input of strings."""
    return tf.TensorSpec(shape, tf.string, name)
