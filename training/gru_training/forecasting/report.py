"""The report of a forecasting run as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from gru_training.data.problems import counted
from gru_training.forecasting.linear import SEASONAL_NAIVE
from gru_training.runs.report_page import markdown_table, note_lines
from gru_training.warm_start import start_lines

TOLERANCE = 0.03
"""Difference of measured and nominal coverage above which the report comments on it."""
_MOST_COLUMNS, _ENDS = 40, 10


def not_better_than_naive(metrics: Mapping[str, Any]) -> str | None:
    """Write a warning if the model does not beat seasonal naive on the validation part."""
    asked = metrics["combination"] and metrics["combination"]["deliver"] == "seasonal-naive"
    if metrics["beats_seasonal_naive"] or asked:
        return None
    measure = metrics["measure"]
    model = metrics["model"]["validation"][measure]
    naive = metrics["baselines"][SEASONAL_NAIVE]["validation"][measure]
    return (
        f"THE MODEL DOES NOT BEAT SEASONAL NAIVE: its validation {measure.upper()} is "
        f"{error_text(model)}, that of repeating the last season {error_text(naive)}. Do not use "
        "it."
    )


def error_text(error: float) -> str:
    """Write a mean error with four decimal places, or a small one with two digits."""
    return f"{error:.4f}" if error >= 0.001 else f"{error:.2g}"


def coverage_remarks(metrics: Mapping[str, Any]) -> list[str]:
    """Write the report's note on intervals with wrong coverage, and its cause."""
    remarks = []
    short = False
    for interval in metrics["intervals"]:
        gap = interval["coverage"] - interval["nominal"]
        if round(abs(gap), 4) > TOLERANCE:
            short = short or gap < 0
            remarks.append(
                f"The {interval['nominal']:.0%} interval covers {interval['coverage']:.1%} of the "
                f"test values, {abs(gap) * 100:.1f} points {'more' if gap > 0 else 'less'} than "
                "it promises."
            )
    if remarks:
        errors = {part: metrics["model"][part]["mse"] for part in ("validation", "test")}
        remarks.append(
            "Intervals reach their nominal coverage only if errors stay as they were on the "
            "validation windows, where the mean squared error is "
            f"{error_text(errors['validation'])}; on the test windows it is "
            f"{error_text(errors['test'])}."
        )
    if short:
        apart = metrics["data"]["rows"]["validation"] / metrics["data"]["horizon"]
        remarks.append(
            "Too little data to trust these intervals: the validation part is "
            f"{apart:.1f} horizons long, and the epoch was chosen on it too. A larger "
            "--validation-fraction may calibrate better."
        )
    return remarks


def write_markdown(metrics: Mapping[str, Any], known_ahead: bool = True) -> str:
    """Write the report as Markdown.

    Args:
        metrics: Content of `metrics.json`.
        known_ahead: Whether the known inputs of the step after the series are there.
    """
    data = metrics["data"]
    lines = [f"# Forecasting: {data['name']}", ""]
    warning = not_better_than_naive(metrics)
    if warning:
        lines += [f"**{warning}**", ""]
    lines += [_in_short(metrics), ""]
    lines += [*_introduction(metrics), "", *_comparison(metrics), "", *_reading(metrics)]
    lines += _combination(metrics)
    refit = metrics["refit"]
    if refit:
        lines += [
            "",
            "All figures here are those of the training on the training rows. What forecasts and "
            f"exports use was trained further on all {refit['rows']:,} rows, for "
            f"{counted(refit['epochs'], 'epoch')}, with the same weights of its parts and the same "
            "intervals.",
        ]
    if metrics["interrupted"]:
        lines += ["", "**Training was interrupted**; the best epoch until then was kept."]
    lines += note_lines(data["notes"])
    lines += start_lines(metrics)
    lines += ["", "## What comes next", ""]
    if known_ahead:
        lines += ["![the steps after the series](future.png)"]
    else:
        names = ", ".join(metrics["known_inputs"])
        lines += [
            f"Forecasts need {names} of the steps ahead: as rows of the table after the last "
            "value, or with `gru-train forecast RUN --future FILE`."
        ]
    if metrics["known_inputs"]:
        lines += ["", "## What the known inputs add", "", "![known inputs](known_inputs.png)"]
    lines += ["", "## The last test windows", "", "![forecasts](forecasts.png)", ""]
    lines += ["## The whole test part", "", "![measured and forecast](test_part.png)", ""]
    lines += ["## Intervals", "", *_intervals(metrics), "", "![coverage](coverage.png)", ""]
    lines += ["## Errors", "", "![by horizon](errors_by_horizon.png)", ""]
    lines += ["![by column](errors_by_column.png)", "", *_columns(metrics), ""]
    lines += ["![residuals](residuals.png)", ""]
    if "epochs" in metrics:
        lines += ["## Learning", "", "![curves](curves.png)", ""]
    lines += ["## Made with", "", f"Seed {metrics['seed']}; settings in `config.json`; "]
    lines[-1] += ", ".join(f"{name} {number}" for name, number in metrics["versions"].items()) + "."
    return "\n".join(lines) + "\n"


def _in_short(metrics: Mapping[str, Any]) -> str:
    """State the main results."""
    test, targets = metrics["model"]["test"], metrics["data"]["targets"]
    naive = metrics["baselines"][SEASONAL_NAIVE]["test"]["mae"]
    text = "**On the test windows forecasts are off by "
    own = test["by_column"][targets[0]]["raw_mae"] if len(targets) == 1 else None
    if own is not None:
        text += f"{own:.4g} on average, in the units of {_escaped(targets[0])}**"
    else:
        text += f"{test['mae']:.3f} standard deviations on average**"
    if naive > 0:
        change = test["mae"] / naive - 1
        text += (
            f", {abs(change):.0%} {'more' if change > 0 else 'less'} than those that repeat the "
            "last season"
        )
    widest = max(metrics["intervals"], key=lambda interval: interval["nominal"])
    return (
        f"{text}. The {widest['nominal']:.0%} interval holds {widest['coverage']:.0%} of the "
        f"values. {_delivered(metrics)}"
    )


def _delivered(metrics: Mapping[str, Any]) -> str:
    """Name the delivered model, and simple models that are better on the test windows."""
    combination, measure = metrics["combination"], metrics["measure"]
    text = "Delivered is the network alone, as the settings ask."
    if combination is not None:
        network = _network_weight(combination)
        parts = "networks and simple forecasters" if network else "simple forecasters"
        text = f"Delivered is the weighted mean of {parts} that does best on the validation windows"
        reason = "they are too few to show that networks help"
        if not combination["few_windows"]:
            reason = "there, networks add nothing"
        text += "." if network else f": {reason}."
        if combination["deliver"] != "combination":
            text = _as_asked(combination["deliver"])
    own = metrics["model"]["test"][measure]
    better = {
        name: floor["test"][measure]
        for name, floor in metrics["baselines"].items()
        if floor["test"][measure] < own
    }
    if better:
        shown = " and ".join(f"{name} ({error:.4f})" for name, error in better.items())
        text += (
            f" **Better on the test windows** ({measure.upper()} {own:.4f}): {shown}, each alone."
        )
    return text


def _as_asked(deliver: str) -> str:
    """State what is delivered in place of the weighted mean of all."""
    return f"Delivered is {deliver.replace('-', ' ')} alone, as `--deliver {deliver}` asks."


def _network_weight(combination: Mapping[str, Any]) -> float:
    return float(sum(share["weight"] for share in combination["shares"] if share["network"]))


def _introduction(metrics: Mapping[str, Any]) -> list[str]:
    data = metrics["data"]
    rows, windows = data["rows"], data["windows"]
    split = "at the published borders" if data["published_split"] else "by time"
    numbered = data["frequency"].endswith("ns")
    spacing = "numbered steps" if numbered else f"one step every {data['frequency']}"
    return [
        f"{len(data['targets'])} of {len(data['columns'])} columns, {data['horizon']} steps "
        f"ahead from the last {data['lookback']}, {spacing}. "
        f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test "
        f"rows, split {split}; {windows['train']:,}, {windows['validation']:,} and "
        f"{windows['test']:,} windows, every one counted. {metrics['model']['parameters']:,} "
        "weights."
    ]


def _comparison(metrics: Mapping[str, Any]) -> list[str]:
    rows = {f"**{metrics['model']['name']}**": metrics["model"]}
    for name, floor in metrics["baselines"].items():
        rows[f"{name}, {floor['detail']}" if floor["detail"] else name] = floor
    columns = [(f"{part} {kind.upper()}", part, kind, ".4f")
               for part in ("validation", "test") for kind in ("mse", "mae")]  # fmt: skip
    columns += [("test MASE", "test", "mase", ".3f"), ("test RMSSE", "test", "rmsse", ".3f"),
                ("test sMAPE", "test", "smape", ".1f")]  # fmt: skip
    cells = [
        [name, *(_cell(row[part][kind], style) for _, part, kind, style in columns)]
        for name, row in rows.items()
    ]
    return markdown_table([["standardised", *(title for title, *_ in columns)], *cells])


def _combination(metrics: Mapping[str, Any]) -> list[str]:
    """Describe the parts of the forecast and their weights."""
    combination = metrics["combination"]
    if combination is None:
        return []
    criterion = combination["criterion"]
    lines = [
        "",
        "## What the forecast is made of",
        "",
        "A weighted mean, in one model. The weights do best on the validation windows together; "
        "the errors are those of each part there, by the loss that was asked for.",
        "",
    ]
    if combination["deliver"] != "combination":
        lines[3] = (
            f"{_as_asked(combination['deliver'])} The errors are those of all that is compared on "
            "the validation windows, by the loss that was asked for."
        )
    if metrics["known_inputs"]:
        lines[3] += (
            f" Each part forecasts what is left without the effect of "
            f"{', '.join(metrics['known_inputs'])}, of which the simple forecasters above know "
            "nothing."
        )
    rows = [("part", "", f"{criterion}, validation", "weight")]
    for share in sorted(combination["shares"], key=lambda share: float(share["validation_loss"])):
        weight = f"{share['weight']:.2f}" if share["weight"] else "none"
        rows.append((share["name"], share["detail"], f"{share['validation_loss']:.4f}", weight))
    lines += markdown_table(rows, words=2)
    network = _network_weight(combination)
    lines += ["", f"Networks have a weight of {network:.2f} of 1."]
    if len(combination["transforms"]) > 1:
        tried = ", ".join(f"{name} {loss:.4f}" for name, loss in combination["transforms"].items())
        lines.append(
            f"Transforms tried, with the {criterion} of the simple forecasters together: {tried}."
        )
    return lines


def _reading(metrics: Mapping[str, Any]) -> list[str]:
    tried = metrics["ridge_by_lookback"]
    ridges = ", ".join(
        f"{lookback} ({errors['validation']['mse']:.4f} on validation, "
        f"{errors['test']['mse']:.4f} on test)"
        for lookback, errors in tried.items()
    )
    chosen = "The look-back of the ridge regression is chosen on the validation windows, of "
    if "epochs" in metrics:
        chosen = (
            f"The best of {counted(metrics['epochs'], 'epoch')} is number {metrics['best_epoch']}, "
            "chosen on the validation windows; so is the look-back of the ridge regression, of "
        )
    return [
        f"{chosen}{ridges}. The scale is that of the training rows. The test windows were used "
        "once, at the end."
    ]


def _intervals(metrics: Mapping[str, Any]) -> list[str]:
    rows = [("interval", "inside, test", "mean width, standardised")]
    for each in metrics["intervals"]:
        width = f"{each['mean_width']:.3f}"
        rows.append((f"{each['nominal']:.0%}", f"{each['coverage']:.1%}", width))
    earlier = (metrics["combination"] or {}).get("earlier_windows", 0)
    before = f" and on {earlier:,} before them" if earlier else ""
    lines = [*markdown_table(rows), ""]
    lines.append(f"Calibrated on the validation windows{before} (split-conformal).")
    lines[-1] += f" CRPS on test, from these levels: {metrics['quantiles']['crps']:.4f}."
    return lines + [f"\n{remark}" for remark in coverage_remarks(metrics)]


def _columns(metrics: Mapping[str, Any]) -> list[str]:
    by_column = metrics["model"]["test"]["by_column"]
    if len(by_column) <= _MOST_COLUMNS:
        return _column_table(metrics, list(by_column))
    known = {name: values for name, values in by_column.items() if values["mse"] is not None}
    scaled = "mase" if all(values["mase"] is not None for values in known.values()) else "mse"
    order = sorted(known, key=lambda name: float(known[name][scaled]))
    ends = {"best": order[:_ENDS], "worst": order[: -_ENDS - 1 : -1]}
    lines = [
        f"The {len(known):,} columns with test values, by {scaled.upper()}; all are in "
        "`metrics.json`.",
    ]
    for which, names in ends.items():
        lines += ["", f"The {which} ten:", "", *_column_table(metrics, names)]
    return lines


def _column_table(metrics: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Errors and coverage of some columns."""
    own_units = [(f"{kind.upper()}, own units", f"raw_{kind}", ".4g") for kind in ("mae", "rmse")]
    scaled = [("MSE", "mse", ".4f"), ("MAE", "mae", ".4f"), ("MASE", "mase", ".3f"),
              ("RMSSE", "rmsse", ".3f")]  # fmt: skip
    measures = [*scaled, *own_units, ("sMAPE", "smape", ".1f")]
    errors = metrics["model"]["test"]["by_column"]
    columns = [
        (title, form, {name: errors[name][kind] for name in names})
        for title, kind, form in measures
    ]
    ranked = metrics["quantiles"]["by_column"]
    columns.append(("CRPS", ".4f", {name: ranked[name]["crps"] for name in names}))
    for interval in metrics["intervals"]:
        inside = interval["by_column"]
        title = f"inside {interval['nominal']:.0%}"
        columns.append((title, ".1%", {name: inside[name] for name in names}))
    rows = [
        [_escaped(name), *(_cell(values[name], form) for _, form, values in columns)]
        for name in names
    ]
    return markdown_table([["column, test", *(title for title, _, _ in columns)], *rows])


def _cell(value: float | None, style: str) -> str:
    return "–" if value is None else format(value, style)


def _escaped(name: str) -> str:
    return name.replace("<", "&lt;")
