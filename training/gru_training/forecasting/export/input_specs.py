"""What the signatures of a forecaster take."""

import tensorflow as tf

Specs = dict[str, dict[str, tf.TensorSpec]]


def input_specs(columns: int, horizon: int, known: int, timed: bool) -> Specs:
    """The inputs of a forecaster of series as they are, by signature and name.

    Args:
        columns: C, that a caller sends.
        horizon: H, steps forecast.
        known: F, inputs of the steps ahead that a caller sends.
        timed: Whether a caller sends the time.
    """
    times = {"timestamp": texts("timestamp", None)} if timed else {}
    ahead, their_ahead = {}, {}
    if known:
        ahead["future"] = numbers("future", None, horizon, known)
        their_ahead["future"] = numbers("future", None, horizon, None)
        their_ahead["future_columns"] = texts("future_columns", None, None)
    history = numbers("history", None, None, columns)
    theirs = {
        "history": numbers("history", None, None, None),
        "columns": texts("columns", None, None),
    }
    return {
        "serving_default": {"history": history, **ahead, **times},
        "by_name": {**theirs, **their_ahead, **times},
        "columns": {"names": texts("names", None, None)},
        "gates": {"history": history, **times},
    }


def one_series_specs(known: int, horizon: int) -> dict[str, tf.TensorSpec]:
    """The inputs of a series that the model never saw.

    Args:
        known: F, inputs of it that a caller sends.
        horizon: H, steps forecast.
    """
    history = {"history": numbers("history", None, None)}
    if not known:
        return history
    past, future = (None, None, known), (None, horizon, known)
    return {**history, "past": numbers("past", *past), "future": numbers("future", *future)}


def numbers(name: str, *shape: int | None) -> tf.TensorSpec:
    """Of float32."""
    return tf.TensorSpec(shape, tf.float32, name)


def texts(name: str, *shape: int | None) -> tf.TensorSpec:
    """Of strings."""
    return tf.TensorSpec(shape, tf.string, name)
