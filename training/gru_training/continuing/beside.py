"""The old model beside the one that went on from it, on the same rows: figures and words.

All of it is one value of a run's `metrics.json`, `continued`:

=================  =============================================================================
run                the run it went on from
new_data           the file of new rows
only_new, replay   whether old rows were left alone; the share of them read in each epoch
grown              what was added, as {"words": 312, "classes": ["refund"]}
measure, style     what is compared, and how a value is written
rows               what the rows are called
parts              by name, as `old test`: rows, before, after
check              of the old validation rows: rows, before, after, p_value, verdict; None without
=================  =============================================================================
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


LEVEL = 0.05
"""Of the test: below it a difference is more than chance."""


def checked(
    rows: int, before: float, after: float, p_value: float | None, higher_is_better: bool
) -> dict[str, Any]:
    """The old validation rows by both models, and whether the new one does worse.

    Args:
        rows: How many.
        before: The measure of the old model.
        after: Of the new one.
        p_value: Of a paired test of both; None where the rows are too few for one.
        higher_is_better: Of the measure.
    """
    verdict = "no difference shown"
    if p_value is not None and p_value < LEVEL and after != before:
        verdict = "better" if (after > before) == higher_is_better else "worse"
    return {
        "rows": rows, "before": before, "after": after, "p_value": p_value, "verdict": verdict,
    }  # fmt: skip


def check_line(continued: Mapping[str, Any]) -> str:
    """What became of the old validation rows, in one line."""
    check, style = continued["check"], continued["style"]
    if check is None and continued["only_new"]:
        return "old validation rows: not scored, as --only-new reads no old row"
    if check is None:
        return (
            f"old validation {continued['rows']}: not scored, as the training part has grown over "
            "all of them"
        )
    sure = "too few rows to tell" if check["p_value"] is None else f"p = {check['p_value']:.2g}"
    return (
        f"old validation {continued['rows']}: {continued['measure']} {check['before']:{style}} "
        f"before, {check['after']:{style}} now ({check['rows']:,} {continued['rows']}; "
        f"{check['verdict']}, {sure})"
    )


def warning(continued: Mapping[str, Any]) -> str | None:
    """What to do where the old rows got worse by more than chance; None where they did not."""
    check = continued["check"]
    if check is None or check["verdict"] != "worse":
        return None
    share = continued["replay"]
    remedy = (
        f"read more of the old rows with --replay, as --replay {min(1.0, max(0.2, 2 * share)):.2g}"
        if share < 1
        else "learn more slowly with --learning-rate"
    )
    return (
        f"on the old validation {continued['rows']} the model does worse than before, by more than "
        f"chance; {remedy}"
    )


def print_beside(continued: Mapping[str, Any], console: "Console") -> None:
    """Print both models' figures, what became of the old validation rows, and a warning."""
    style, parts = continued["style"], continued["parts"]
    heading = continued["measure"]
    width = max(len(heading), *map(len, parts))
    console.print(f"\n{heading:{width}}  old run  this run", style="bold")
    for name, part in parts.items():
        cells = ["" if part[key] is None else f"{part[key]:{style}}" for key in ("before", "after")]
        console.print(f"{name:{width}}  {cells[0]:>7}  {cells[1]:>8}", highlight=False)
    console.print(f"\n{check_line(continued)}", markup=False, highlight=False)
    worse = warning(continued)
    if worse is not None:
        console.print(f"warning: {worse}", style="yellow", markup=False, highlight=False)


def beside_lines(continued: Mapping[str, Any]) -> list[str]:
    """A section of the report, in Markdown."""
    style, parts = continued["style"], continued["parts"]
    names = list(parts)
    grown = [
        f"{len(value):,} new {name}: {', '.join(map(str, value))}"
        if isinstance(value, list)
        else f"{value:,} new {name}"
        for name, value in continued["grown"].items()
        if value
    ]
    read = "No old row was read."
    if not continued["only_new"]:
        share = f"{continued['replay']:.0%} of the old ones"
        read = f"Each epoch read all new {continued['rows']} and {share}."
    lines = [
        "",
        "## The run it goes on from",
        "",
        f"Trained on from `{continued['run']}` with `{continued['new_data']}`. {read}"
        + (f" Added: {'; '.join(grown)}." if grown else ""),
        "",
        f"| {continued['measure']} | "
        + " | ".join(f"{name} ({parts[name]['rows']:,})" for name in names)
        + " |",
        "|---|" + "---:|" * len(names),
    ]
    for title, key in (("the old run", "before"), ("**this run**", "after")):
        cells = [
            "" if parts[name][key] is None else f"{parts[name][key]:{style}}" for name in names
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    line = check_line(continued)
    lines += ["", f"{line[0].upper()}{line[1:]}."]
    worse = warning(continued)
    if worse is not None:
        lines += ["", f"**{worse[0].upper()}{worse[1:]}.**"]
    return lines
