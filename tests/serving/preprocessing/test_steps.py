"""Every step of the description in both runtimes, on the same drawn values."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing import examples  # noqa: F401
from gru_serving.preprocessing.calendar import (
    AddCalendar,
    AddFutureCalendar,
    CalendarTable,
    StepTimes,
)
from gru_serving.preprocessing.checks import (
    RequireFinite,
    RequireRows,
    RequireShape,
    RequireSome,
    RequireSteps,
    RequireValues,
)
from gru_serving.preprocessing.description import Described, Files, Step
from gru_serving.preprocessing.examples import ParseExample
from gru_serving.preprocessing.series import (
    AddEffects,
    AverageEffect,
    CalibrateQuantiles,
    EndSeries,
    FindColumns,
    InputEffect,
    Intervals,
    NumberSteps,
    OrderColumns,
    ReadAlone,
    Restore,
    RestoreAlone,
    SeriesColumns,
    SeriesScale,
    SplitEffect,
    Standardise,
    StandardiseTick,
    TakeLast,
    TakePlaces,
)
from gru_serving.preprocessing.texts import TextStep
from gru_serving.protos.example_pb2 import Example

ELSEWHERE = {
    *("tokenize", "look_up", "show_tokens"),  # test_texts.py
    *("probabilities", "choose_class", "choose_labels", "restore_number", "add_bounds"),
    *("repeat_names", "hide_padding", "find_label", "name_label"),  # test_answers.py
}
B, T, C, H = 3, 7, 3, 4

SHARED = InputEffect((1,), ((-0.5, 0.75),), ((0.5, -1.0), (2.0, 0.25), (-1.0, 0.0)), False)
PAIRED = InputEffect((1, 2), ((0.1,), ()), ((0.5,), (2.0,), (-1.0,), (0.3,), (0.7,)), True)
OWN = InputEffect((1, 0), ((0.2,),), ((0.5, 1.5), (-0.7, 0.1)), False)
MEANS = (5.0, -2.0, 300.0), (2.0, 0.5, 40.0)
SCALES = [
    SeriesScale(*MEANS, (2, 0)),
    SeriesScale(*MEANS, (2, 0), (True, False, True), 0.0),
    SeriesScale(*MEANS, (0, 1), (True, False, False), 0.4),
    SeriesScale(*MEANS, (0, 2), (True, True, True), 1.0),
    SeriesScale(*MEANS, (2, 0), known=SHARED),
    SeriesScale(*MEANS, (0,), known=PAIRED),
    SeriesScale(*MEANS, (2, 0), known=OWN),
]
OFFSETS = np.sort(np.random.default_rng(1).normal(size=(H, 2, 5)), axis=-1)
OFFSETS -= OFFSETS[..., 2:3]
INTERVALS = Intervals(
    (0.025, 0.1, 0.5, 0.9, 0.975), tuple(tuple(map(tuple, each)) for each in OFFSETS.tolist())
)
AVERAGE = AverageEffect(
    InputEffect((0, 1), ((0.3,), ()), ((0.5,), (-1.0,), (2.0,)), False),
    (1.0, 0.5),
    (0.2, 2.0),
    (True, False),
)
NAMES = SeriesColumns(("load", "wind", "price"), (2, 0), (0, 2), (1,))
CALENDAR = CalendarTable(
    ("weekday", "month", "day_sin", "year_cos", "holiday"),
    StepTimes("h", 3600, 0, False),
    holidays=(19_782, 19_800),
    years=(2020, 2030),
)


def values(*shape, gaps=True, infinite=False):
    """Float32 arrays: some of it missing, small, large, or negative."""
    usual = st.floats(-1000, 1000, width=32)
    some = [st.just(np.float32(np.nan))] if gaps else []
    some += [st.just(np.float32(np.inf))] if infinite else []
    return hnp.arrays(
        np.float32, shape, elements=st.one_of(usual, *some), fill=st.just(np.float32(3))
    )


def texts(*shape, of=("load", "wind", "price", "", "ö")):
    return hnp.arrays(object, shape, elements=st.sampled_from([text.encode() for text in of]))


def history(**options):
    return values(B, T, C, **options)


def serialized(feature, kind, value):
    example = Example()
    getattr(example.features.feature[feature], kind).value.extend(value)
    return example.SerializeToString()


EXAMPLES = [
    serialized("text", "bytes_list", [b"good \xff"]),
    serialized("text", "bytes_list", []),
    serialized("text", "bytes_list", [b"a", b"b"]),
    serialized("text", "float_list", [1.0]),
    serialized("other", "bytes_list", [b"a"]),
    b"no example",
    b"",
]
TIMES = (
    "2024-02-29 23:00",
    "2024-03-01T00:00Z",
    "2024-06-30 12:00+02:00",
    "yesterday",
    "2024-02-30 01:00",
    "2031-01-01 00:00",
    "2024-01-01 00:30",
    "\v2024-01-01",
)
several = st.sampled_from
fixed = st.fixed_dictionaries
STEPS = {
    "take_last": st.tuples(
        st.builds(TakeLast, st.just("history"), st.just("x"), st.integers(1, 9)),
        fixed({"history": history()}),
    ),
    "standardise": st.tuples(
        st.builds(Standardise, st.just("history"), st.just("x"), several(SCALES)),
        fixed({"history": history()}),
    ),
    "standardise_tick": st.tuples(
        st.builds(StandardiseTick, st.just("value"), st.just("x"), several(SCALES)),
        fixed({"value": values(B, C)}),
    ),
    "add_effects": st.tuples(
        st.builds(
            AddEffects,
            st.just("history"),
            several(["future", None]),
            st.just("x"),
            several(SCALES[4:5] + SCALES[5:6]),
        ),
        fixed({"history": history()}),
    ).flatmap(
        lambda pair: st.tuples(
            st.just(pair[0]),
            fixed(
                {
                    "history": history(),
                    "future": values(B, H, len(pair[0].scale.future_columns)),
                }
            ),
        )
    ),
    "calibrate_quantiles": st.one_of(
        *(
            st.tuples(
                st.just(CalibrateQuantiles("answers", "x", INTERVALS, unknown)),
                fixed({"answers": values(B, H, 1 if unknown else 2, count, gaps=False)}),
            )
            for unknown in (False, True)
            for count in (1, 5)
        )
    ),
    "restore": st.one_of(
        *(
            st.tuples(
                st.builds(
                    Restore,
                    st.just("a"),
                    st.just("x"),
                    several(SCALES[:4]),
                    st.just(axes),
                    several([None, "effects"]),
                ),
                fixed(
                    {
                        "a": hnp.arrays(np.float32, shape, elements=st.floats(-6, 6, width=32)),
                        "effects": hnp.arrays(
                            np.float32, (B, H, 2), elements=st.floats(-2, 2, width=32)
                        ),
                    }
                ),
            )
            for axes, shape in ((2, (B, H, 2, 5)), (1, (B, H, 2)))
        )
    ),
    "take_places": st.tuples(
        st.builds(TakePlaces, st.just("history"), st.just("x"), several([(2, 0), 1, (1,)])),
        fixed({"history": history()}),
    ),
    "end_series": st.tuples(
        st.just(EndSeries("history", (2, 0))),
        fixed(
            {
                "history": hnp.arrays(
                    np.float32,
                    (B, T, C),
                    fill=st.just(np.float32(np.nan)),
                    elements=several([np.float32(1), np.float32(np.nan)]),
                ),
                "forecast": values(B, H, 2, gaps=False),
                "quantiles": values(B, H, 2, 5, gaps=False),
            }
        ),
    ),
    "number_steps": st.tuples(
        st.builds(
            NumberSteps, st.just("history"), st.just("state"), st.just("x"), st.integers(1, 3)
        ),
        fixed({"history": history(), "state": values(B, 2, 2, gaps=False)}),
    ),
    "read_alone": st.tuples(
        st.builds(
            ReadAlone,
            st.just("history"),
            st.just("x"),
            several([4, 7, 10]),
            several([None, 0.0, 0.6]),
        ),
        fixed(
            {
                "history": values(B, T).map(
                    lambda array: np.where(np.arange(T) == T - 1, np.float32(7), array)
                )
            }
        ),
    ),
    "split_effect": st.tuples(
        st.builds(
            SplitEffect, st.just("past"), st.just("future"), several([4, 10]), st.just(AVERAGE)
        ),
        fixed({"past": values(B, T, 2).map(np.abs), "future": values(B, H, 2).map(np.abs)}),
    ),
    "restore_alone": st.tuples(
        st.builds(RestoreAlone, st.just("a"), st.just("x"), several([None, 0.0, 0.6])),
        fixed(
            {
                "a": hnp.arrays(np.float32, (B, H, 1, 5), elements=st.floats(-6, 6, width=32)),
                "level": values(B, 1, 1, gaps=False),
                "spread": st.just(np.full((B, 1, 1), 2, "f4")),
                "ahead": hnp.arrays(np.float32, (B, H), elements=st.floats(-2, 2, width=32)),
            }
        ),
    ),
    "find_columns": st.tuples(st.just(FindColumns("names", NAMES)), fixed({"names": texts(B, 4)})),
    "order_columns": st.one_of(
        st.tuples(
            st.just(OrderColumns("history", "columns", NAMES)),
            fixed(
                {
                    "history": values(B, T, 4),
                    "columns": st.one_of(texts(B, 4), texts(B, 3), texts(2, 4)),
                }
            ),
        ),
        st.tuples(
            st.just(OrderColumns("history", "columns", NAMES)),
            fixed(
                {
                    "history": values(B, T, 4),
                    "columns": st.permutations([b"load", b"wind", b"price", b"x"]).map(
                        lambda names: np.array([names] * B, object)
                    ),
                }
            ),
        ),
        st.tuples(
            st.just(OrderColumns("future", "names", NAMES, True)),
            fixed({"future": values(B, H, 2), "names": texts(B, 2)}),
        ),
    ),
    "require_shape": st.tuples(
        st.builds(
            RequireShape,
            st.just("history"),
            several([(None, None, 3), (None, 4, None), (None, None), (None,) * 4]),
        ),
        fixed({"history": history()}),
    ),
    "require_rows": st.tuples(
        st.just(RequireRows("a")), fixed({"history": history(), "a": values(B, 2) | values(2, 2)})
    ),
    "require_steps": st.tuples(
        st.builds(RequireSteps, st.just("history"), st.integers(1, 12)),
        fixed({"history": history()}),
    ),
    "require_finite": st.tuples(
        st.just(RequireFinite("history")), fixed({"history": history(infinite=True)})
    ),
    "require_some": st.tuples(
        st.just(RequireSome("history")),
        fixed(
            {
                "history": hnp.arrays(
                    np.float32, (B, 2), elements=several([np.float32(1), np.float32(np.nan)])
                )
            }
        ),
    ),
    "require_values": st.tuples(
        st.just(RequireValues("history", (0, 2), ("load", "price"))),
        fixed(
            {
                "history": hnp.arrays(
                    np.float32, (B, 2, C), elements=several([np.float32(1), np.float32(np.nan)])
                )
            }
        ),
    ),
    "add_calendar": st.tuples(
        st.builds(
            AddCalendar,
            st.just("history"),
            st.just("x"),
            several(["timestamp", None]),
            st.just(CALENDAR),
        ),
        fixed({"history": history(), "timestamp": texts(B, of=TIMES[:3]) | texts(B, of=TIMES)}),
    ),
    "add_future_calendar": st.tuples(
        st.just(AddFutureCalendar("future", "x", "timestamp", H, (4, 0), (1, 0, 2), CALENDAR)),
        fixed(
            {"future": values(B, H, 1), "timestamp": texts(B, of=TIMES[:3]) | texts(B, of=TIMES)}
        ),
    ),
    "parse_example": st.tuples(
        st.just(ParseExample("inputs", "text", "x")),
        fixed({"inputs": hnp.arrays(object, (2,), elements=several(EXAMPLES))}),
    ),
}


class Read(Files):
    """The files of a step as a server reads them."""

    def __init__(self, step):
        self._read = {}
        for name, kind in step.files().items():
            written = getattr(step, name)
            self._read[written.file] = kind.parse(written.text())


def test_every_step_is_compared():
    kinds = {name for name, kind in Described._kinds.items() if not issubclass(kind, TextStep)}
    assert kinds == STEPS.keys() | ELSEWHERE


@pytest.mark.parametrize("kind", STEPS)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_both_runtimes_do_the_same(kind, data):
    written, given_values = data.draw(STEPS[kind])
    step = Step.from_json(written.to_json(), Read(written))
    assert step == written
    found = dict(given_values)
    graph = {name: tf.constant(value) for name, value in given_values.items()}
    refused = None
    try:
        step.numpy(found)
    except InvalidArgument as error:
        refused = str(error).removeprefix("assertion failed: [").removesuffix("]")
    if refused is not None:
        with pytest.raises(tf.errors.InvalidArgumentError) as theirs:
            step.graph(graph)
        # An error of a step that is run at once shows what is no ASCII in escapes.
        assert (
            refused in theirs.value.message or repr(refused.encode())[2:-1] in theirs.value.message
        )
        return
    step.graph(graph)
    assert found.keys() == graph.keys()
    for name, tensor in graph.items():
        wanted, got = tensor.numpy(), found[name]
        assert got.dtype == wanted.dtype, name
        assert got.shape == wanted.shape, name
        if got.dtype == object or got.dtype.kind == "i":
            np.testing.assert_array_equal(got, wanted, err_msg=name)
        else:
            scale = max(1.0, float(np.nanmax(np.abs(wanted), initial=0)))
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6 * scale, err_msg=name)
