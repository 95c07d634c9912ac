"""Train a model of neuralforecast on a panel and print its errors as JSON.

Run by `python -m benchmarks.panel` with a Python that has neuralforecast; it imports nothing of
this project. The model learns from the training rows, and of several look-backs the one that does
best on the validation rows counts; with each the training is as long as the time given.
"""

import argparse
import json
import logging
import time
import warnings

import numpy as np
import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import GRU, NHITS

MODELS = {"NHITS": NHITS, "GRU": GRU}
_PROBE = 40
"""Steps of which the time tells how many fit."""
_SERIES_AT_ONCE = 4000


def main() -> None:
    """Train and print."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="CSV file with unique_id, ds and y")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--train", type=int, required=True, help="rows of the training part")
    parser.add_argument("--validation", type=int, required=True, help="row at which it ends")
    parser.add_argument("--horizon", type=int, required=True)
    parser.add_argument("--season", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="for a training")
    parser.add_argument("--lookbacks", type=int, nargs="+", required=True)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    long = pd.read_csv(asked.data, parse_dates=["ds"])[["unique_id", "ds", "y"]]
    wide = long.pivot(index="ds", columns="unique_id", values="y").asfreq("D")
    long["y"] = long["y"].astype(np.float32)
    known = long[long["ds"] < wide.index[asked.validation]]
    tried = {}
    for lookback in asked.lookbacks:
        began = time.perf_counter()
        fitted, steps = trained(known, lookback, asked)
        seconds = time.perf_counter() - began
        origins = range(asked.train, asked.validation - asked.horizon + 1, asked.season)
        error = mean(mase(fitted, wide, origins, lookback, asked))
        tried[lookback] = error, fitted, steps, seconds
    lookback = min(tried, key=lambda each: tried[each][0])
    _, fitted, steps, seconds = tried[lookback]
    origins = range(asked.validation, len(wide) - asked.horizon + 1)
    print(
        json.dumps(
            {
                "mase": mean(mase(fitted, wide, origins, lookback, asked)),
                "lookback": lookback,
                "steps": steps,
                "seconds": seconds,
                "validation": {str(each): of[0] for each, of in tried.items()},
            }
        )
    )


def trained(
    known: pd.DataFrame, lookback: int, asked: argparse.Namespace
) -> tuple[NeuralForecast, int]:
    """A model, and how many steps it was trained for within the time."""
    began = time.perf_counter()
    probed = fit(known, lookback, asked, _PROBE)
    rate = _PROBE / (time.perf_counter() - began)
    del probed
    steps = max(_PROBE, int(rate * asked.seconds))
    return fit(known, lookback, asked, steps), steps


def fit(
    known: pd.DataFrame, lookback: int, asked: argparse.Namespace, steps: int
) -> NeuralForecast:
    """The model after so many steps, its learning rate lowered three times on the way."""
    model = MODELS[asked.model](
        h=asked.horizon,
        input_size=lookback,
        loss=MAE(),
        max_steps=steps,
        scaler_type="robust",
        start_padding_enabled=True,
        random_seed=asked.seed,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        logger=False,
    )
    found = NeuralForecast(models=[model], freq="D")
    found.fit(known, val_size=asked.validation - asked.train)
    return found


def mase(
    fitted: NeuralForecast,
    wide: pd.DataFrame,
    origins: range,
    lookback: int,
    asked: argparse.Namespace,
) -> np.ndarray:
    """(K,) over every window of these first steps; NaN of series without values there."""
    values = wide.to_numpy()
    naive = np.nanmean(
        np.abs(values[asked.season : asked.train] - values[: asked.train - asked.season]), axis=0
    )
    total, count = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    pieces: list[tuple[int, int, pd.DataFrame]] = []
    for origin in origins:
        for column in np.flatnonzero(np.isfinite(values[origin - 1])):
            read = values[max(0, origin - lookback) : origin, column]
            read = read[np.isfinite(read)].astype(np.float32)
            name = f"{column}|{origin}"
            times = wide.index[origin - len(read) : origin]
            piece = pd.DataFrame({"unique_id": name, "ds": times, "y": read})
            pieces.append((int(column), origin, piece))
    for start in range(0, len(pieces), _SERIES_AT_ONCE):
        some = pieces[start : start + _SERIES_AT_ONCE]
        found = fitted.predict(df=pd.concat([piece for *_, piece in some], ignore_index=True))
        if "unique_id" not in found.columns:
            found = found.reset_index()
        by_name = {name: rows[asked.model].to_numpy() for name, rows in found.groupby("unique_id")}
        for column, origin, _ in some:
            truth = values[origin : origin + asked.horizon, column]
            error = np.abs(truth - by_name[f"{column}|{origin}"])
            total[column] += np.nansum(error)
            count[column] += np.isfinite(error).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return total / count / naive


def mean(values: np.ndarray) -> float:
    """Over what is known."""
    return float(np.nanmean(values[np.isfinite(values)]))


if __name__ == "__main__":
    main()
