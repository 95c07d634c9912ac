"""The runs behind an average, a distilled or a taught network, as Markdown and on the console."""

from collections.abc import Mapping, Sequence
from typing import Any

_HEADINGS = {
    "accuracy": ("accuracy", ".2%"),
    "micro_f1": ("micro F1", ".2%"),
    "macro_f1": ("macro F1", ".2%"),
    "average_precision": ("average precision", ".2%"),
    "log_loss": ("log loss", ".4f"),
    "mae": ("mean absolute error", ".4g"),
    "mse": ("MSE", ".4f"),
    "mase": ("MASE", ".4f"),
    "rmse": ("root mean squared error", ".4g"),
}


def lineage_lines(metrics: Mapping[str, Any]) -> list[str]:
    """A section of the report; nothing where a run was simply trained.

    Args:
        metrics: What `metrics.json` holds.
    """
    key = _key(metrics)
    if key is None:
        return []
    figures = metrics[key]
    names = list(figures["mean"]["test"])
    shown = [(part, name) for name in names for part in ("validation", "test")]

    lines = [
        "",
        "## The runs it averages" if key == "ensemble" else "## What it was distilled from",
        "",
        *_head(shown),
        *(_row(f"`{run['name']}`", run, shown) for run in figures["runs"]),
        _row("mean ± standard deviation of the runs", figures["mean"], shown, figures["deviation"]),
    ]
    if key == "distilled":
        lines.append(_row("their average", figures["average"], shown))
    own = "**average**" if key == "ensemble" else "**distilled**"
    lines.append(_row(own, figures["model"], shown))
    return [*lines, "", gain_sentence(metrics), "", figures["how"]]


def taught_lines(metrics: Mapping[str, Any]) -> list[str]:
    """A section of the report on a run that also learned what another one answers."""
    if "taught" not in metrics:
        return []
    figures = metrics["taught"]
    lines = [
        "",
        "## What it was taught",
        "",
        f"Beside the labels it learned what the run `{figures['run']}` answers to "
        f"{figures['texts']:,} texts without labels{_of_which(figures)}.{_chosen_from(figures)}",
    ]
    if "teacher" not in figures:
        return lines
    names = list(figures["model"]["test"])
    shown = [(part, name) for name in names for part in ("validation", "test")]
    lines += ["", *_head(shown)]
    for who, of in (("its teacher", figures["teacher"]), ("**this run**", figures["model"])):
        lines.append(_row(who, of, shown))
    return lines


def _of_which(figures: Mapping[str, Any]) -> str:
    """How many of the texts an epoch read, where it did not read them all."""
    read = figures.get("read", figures["texts"])
    return "" if read == figures["texts"] else f", of which each epoch read {read:,}"


def _chosen_from(figures: Mapping[str, Any]) -> str:
    """How many texts the teacher answered, where only sure answers were learned."""
    if "asked" not in figures:
        return ""
    return f" They were chosen from {figures['asked']:,}, by how sure it is."


def gain_sentence(metrics: Mapping[str, Any]) -> str:
    """How much better an average or a distilled network is than its runs are on average."""
    key = _key(metrics)
    assert key is not None
    figures = metrics[key]
    gained = [
        f"{_HEADINGS[name][0]} {_gain(name, figures['gain']['test'][name])}"
        + ("" if key == "ensemble" else _kept(figures["kept"]["test"][name]))
        for name in figures["mean"]["test"]
    ]
    what = "average" if key == "ensemble" else "distilled network"
    return (
        f"Beside the mean of the runs the {what} is better on the test rows by: "
        f"{'; '.join(gained)} (below zero where it is worse)."
    )


def _head(shown: Sequence[tuple[str, str]]) -> list[str]:
    """Of a table with a column for each of these parts and measures."""
    return [
        "| | " + " | ".join(f"{_HEADINGS[name][0]}, {part}" for part, name in shown) + " |",
        "|---|" + "---:|" * len(shown),
    ]


def _row(
    name: str,
    of: Mapping[str, Any],
    shown: Sequence[tuple[str, str]],
    deviation: Mapping[str, Any] | None = None,
) -> str:
    cells = [
        format(of[part][measure], _HEADINGS[measure][1])
        + (f" ± {format(deviation[part][measure], _HEADINGS[measure][1])}" if deviation else "")
        for part, measure in shown
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _key(metrics: Mapping[str, Any]) -> str | None:
    return next((name for name in ("ensemble", "distilled") if name in metrics), None)


def _gain(name: str, value: float) -> str:
    style = _HEADINGS[name][1]
    return f"{100 * value:+.2f} points" if style.endswith("%") else format(value, f"+{style[1:]}")


def _kept(share: float | None) -> str:
    return "" if share is None else f", {share:.0%} of what the average gains"
