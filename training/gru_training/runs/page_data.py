"""The numbers behind a report's pictures, by the picture's name, as its page takes them.

Only what is there and looks as expected is taken; the page shows the picture of the rest.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

MOST_MISTAKES = 1000
MOST_LETTERS = 800
MOST_WORDS = 400
MOST_NUMBERS = 250_000
"""Of the forecasts; with more columns or longer windows fewer of them are in the page."""
MOST_CLASSES = 200


def page_data(folder: Path) -> dict[str, Any]:
    """What the page draws, by the name of the picture or the page that it stands for."""
    metrics = _json(folder / "metrics.json")
    sources: dict[str, Callable[[], Any]] = {
        "curves.png": lambda: _curves(_json(folder / "history.json"), metrics),
        "confusion_matrix.png": lambda: _answers(folder),
        "accuracy_by_length.png": lambda: _by_length(metrics),
        "errors_by_horizon.png": lambda: _by_horizon(metrics),
        "coverage.png": lambda: _coverage(metrics),
        "forecasts.png": lambda: _forecasts(folder),
        "explanations.html": lambda: _marked(_json(folder / "marked_texts.json")),
        "comparison.png": lambda: _comparison(_json(folder / "comparison.json")),
    }
    found = {}
    for name, source in sources.items():
        try:
            data = source()
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError):
            continue  # another version's file, or a task with other figures
        if data is not None and (folder / name).is_file():
            found[name] = data
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _number(value: Any, digits: int = 6) -> float | None:
    return float(f"{float(value):.{digits}g}") if np.isfinite(value) else None


def _numbers(values: Any, digits: int = 6) -> Any:
    if np.ndim(values):
        return [_number(value, digits) if not np.ndim(value) else _numbers(value, digits)
                for value in values]  # fmt: skip
    return _number(values, digits)


def _curves(history: Any, metrics: Any) -> Any:
    if not history:
        return None
    names: dict[str, Any] = {}
    for name in history[0]["train"]:  # the loss may be one of the measures
        values = [record["validation"][name] for record in history]
        if values not in names.values():
            names[name] = values
    return {
        "epochs": [record["epoch"] for record in history],
        "best": metrics["best_epoch"],
        "curves": {
            name: {part: _numbers([record[part][name] for record in history])
                   for part in ("train", "validation")}
            for name in names
        },
    }  # fmt: skip


def _answers(folder: Path) -> Any:
    """Counts of label and answer, and the mistakes, the most confident first."""
    classes = _json(folder / "classes.json")
    numbers = {name: number for number, name in enumerate(classes)}
    if len(classes) > MOST_CLASSES:
        return None
    counts = np.zeros((len(classes), len(classes)), int)
    mistakes = []
    with (folder / "test_predictions.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            label, predicted = numbers[row["label"]], numbers[row["predicted"]]
            counts[label, predicted] += 1
            if label != predicted:
                probability = _number(row["scores"][predicted], 4)
                mistakes.append([number, label, predicted, probability, row["text"][:MOST_LETTERS]])
    mistakes.sort(key=lambda row: -row[3])
    return {
        "classes": classes,
        "counts": counts.tolist(),
        "mistakes": mistakes[:MOST_MISTAKES],
        "wrong": len(mistakes),
    }


def _marked(rows: Any) -> Any:
    """Texts whose words are marked by what they have to do with an answer."""
    return [
        {
            "answer": str(row["answer"]),
            "verdict": str(row["verdict"]),
            "words": list(zip(map(str, row["tokens"]), _numbers(row["scores"], 4), strict=True))[
                :MOST_WORDS
            ],
        }
        for row in rows
    ]


def _by_length(metrics: Any) -> Any:
    bins = metrics["by_length"]
    models = [name for name, of in bins[0].items() if isinstance(of, Mapping)]
    return {
        "bins": [f"{of['shortest']}–{of['longest']} ({of['rows']:,})" for of in bins],
        "models": {
            name: {key: _numbers([of[name][key] for of in bins])
                   for key in ("accuracy", "low", "high")}
            for name in models
        },
    }  # fmt: skip


def _by_horizon(metrics: Any) -> Any:
    rows = {metrics["model"]["name"]: metrics["model"], **metrics["baselines"]}
    return {
        kind: {name: _numbers(row["test"]["by_horizon"][kind]) for name, row in rows.items()}
        for kind in ("mse", "mae")
    }


def _coverage(metrics: Any) -> Any:
    return [
        {"nominal": interval["nominal"], "by_horizon": _numbers(interval["by_horizon"], 4)}
        for interval in metrics["intervals"]
    ]


def _forecasts(folder: Path) -> Any:
    """Test windows with their forecasts, and what came where a later window shows it."""
    series = _json(folder / "series.json")
    with np.load(folder / "test_windows.npz") as windows:
        histories, origins = windows["histories"], windows["origins"]
        forecasts, quantiles = windows["forecasts"], windows["quantiles"]
    with np.load(folder / "calibration.npz") as calibration:
        levels = calibration["levels"]
    names = list(series["target_columns"])
    columns = [list(series["columns"]).index(name) for name in names]
    steps = histories.shape[1]
    shown_history = min(steps, 2 * forecasts.shape[1] + 64)
    each = shown_history + forecasts.shape[1] * (2 + len(levels))
    count = int(np.clip(MOST_NUMBERS // (each * len(names)), 1, len(histories)))
    names = names[: max(1, MOST_NUMBERS // (each * count))]
    columns = columns[: len(names)]
    came: dict[int, np.ndarray] = {}
    for history, origin in zip(histories, origins, strict=True):
        came.update(zip(range(origin - steps, origin), history, strict=True))
    chosen = np.unique(np.linspace(0, len(histories) - 1, count).round().astype(int))
    nothing = np.full(histories.shape[2], np.nan)
    horizon = range(forecasts.shape[1])
    return {
        "columns": names,
        "more": len(series["target_columns"]) - len(names),
        "levels": _numbers(levels),
        "frequency": series["frequency"],
        "first": series["first_time"],
        "windows": [
            {
                "origin": int(origins[i]),
                "history": _numbers(histories[i, -shown_history:][:, columns].T, 5),
                "came": _numbers(
                    np.array([came.get(origins[i] + step, nothing) for step in horizon])[
                        :, columns
                    ].T,
                    5,
                ),
                "forecast": _numbers(forecasts[i][:, : len(names)].T, 5),
                "quantiles": _numbers(quantiles[i][:, : len(names)].transpose(1, 2, 0), 5),
            }
            for i in chosen
        ],
    }


def _comparison(comparison: Any) -> Any:
    """Each model's difference from the reference, with its interval, by measure."""
    reference, *others = comparison["contenders"]
    return {
        "reference": reference["name"],
        "measures": {
            name: {
                "percent": style.endswith("%"),
                "higher": comparison["higher_is_better"][name],
                "rows": [
                    {"name": each["name"], "run": each["is_run"], "verdict": each["verdict"],
                     **{key: each["measures"][name]["difference"][key]
                        for key in ("value", "low", "high")}}
                    for each in others
                    if name in each["measures"] and each["measures"][name]["difference"]
                ],
            }
            for name, style in comparison["styles"].items()
        },
    }  # fmt: skip
