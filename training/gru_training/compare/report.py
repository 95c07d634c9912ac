"""The presentation of a comparison: tables as text and Markdown, the picture, their folder."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from rich.console import Console

from gru_training.compare.comparison import Comparison, Contender
from gru_training.compare.diebold_mariano import FEWEST_WINDOWS, MANY_WINDOWS
from gru_training.compare.estimates import Estimate
from gru_training.plots import save_figure
from gru_training.runs.directory import RunWriter
from gru_training.runs.report_page import markdown_table, note_lines, write_report_page

Table = list[list[str]]
"""Rows of cells, the first one of headings."""


def print_tables(comparison: Comparison, console: Console) -> None:
    """Print the measures, their differences, and the settings that differ."""
    tables = [_values(comparison), _differences(comparison), _settings(comparison)]
    console.print(f"\n{_subject(comparison)}")
    for table in tables:
        if len(table) > 1:
            console.print("")
            for line in aligned(table):
                console.print(line)
    notes = (f"note: {note}" for note in comparison.notes)
    for line in (*_remarks(comparison), *notes, *_verdicts(comparison)):
        console.print(f"\n{line}")


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write comparison.md, comparison.html, comparison.png and comparison.json.

    Returns:
        The new folder.

    Raises:
        RunDirectoryError: The folder cannot be written, or exists.
    """
    with RunWriter(folder.parent, folder.name) as writer:
        writer.write_json("comparison.json", asdict(comparison))
        writer.write_text("comparison.md", write_markdown(comparison))
        draw_differences(comparison, writer.path / "comparison.png")
        write_report_page(writer.path)
        return writer.publish()


def write_markdown(comparison: Comparison) -> str:
    """Write the comparison as Markdown."""
    name = comparison.reference.name
    lines = [f"# Comparison with {name}", "", _subject(comparison), ""]
    lines += [line for verdict in _verdicts(comparison) for line in (f"**{verdict}**", "")]
    lines += [*markdown_table(_values(comparison)), "", f"## Differences from {name}", ""]
    lines += [*markdown_table(_differences(comparison)), "", "![differences](comparison.png)"]
    lines += [f"\n{remark}" for remark in _remarks(comparison)]
    lines += note_lines(comparison.notes)
    lines += ["", "## Settings that differ", ""]
    settings = _settings(comparison)
    lines += markdown_table(settings) if len(settings) > 1 else ["None: the runs were made alike."]
    lines += ["", "## How to read this", ""]
    lines += [f"- {line}" for line in _reading(comparison)]
    return "\n".join(lines) + "\n"


def aligned(table: Table) -> list[str]:
    """Align rows as lines of text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _subject(comparison: Comparison) -> str:
    runs = sum(each.is_run for each in comparison.contenders)
    source = "" if comparison.source is None else f" of {comparison.source}"
    return f"{runs} runs on the same {comparison.count:,} {comparison.rows}{source}."


def _verdicts(comparison: Comparison) -> list[str]:
    """Describe the tests' results in one sentence each."""
    name, first = comparison.reference.name, comparison.deciding
    said = []
    for verdict, words in (
        ("better", f"Better than {name} by {first}"),
        ("worse", f"Worse than {name} by {first}"),
        ("no difference shown", f"No difference in {first} from {name} shown"),
    ):
        of = [each.name for each in comparison.contenders if each.verdict == verdict]
        if of:
            said.append(f"{words}: {', '.join(of)}.")
    return said


def _values(comparison: Comparison) -> Table:
    table = [["", *(f"{name} (95 %)" for name in comparison.styles)]]
    for each in comparison.contenders:
        cells = [
            _estimate(each.measures[name].value, style) if name in each.measures else "–"
            for name, style in comparison.styles.items()
        ]
        table.append([each.name, *cells])
    return table


def _differences(comparison: Comparison) -> Table:
    tested = any(each.p_value is not None for each in comparison.contenders)
    counted = any(each.mcnemar is not None for each in comparison.contenders)
    head = [f"against {comparison.reference.name}"]
    head += [
        f"{name}, points" if style.endswith("%") else name
        for name, style in comparison.styles.items()
    ]
    head += ["right alone"] * counted + ["p", "p (Holm)", ""] * tested
    table = [head]
    for each in comparison.contenders[1:]:
        row = [each.name]
        for name, style in comparison.styles.items():
            found = each.measures.get(name)
            difference = found.difference if found else None
            row.append("–" if difference is None else _estimate(difference, style, sign="+"))
        row += [_counts(each)] * counted
        row += [_p_value(each.p_value), _p_value(each.adjusted), each.verdict] * tested
        table.append(row)
    return table


def _settings(comparison: Comparison) -> Table:
    runs = [each.name for each in comparison.contenders if each.is_run]
    flags = comparison.settings
    if len(flags) > len(runs):
        return [["", *runs], *([flag, *of.values()] for flag, of in flags.items())]
    return [["", *flags], *([run, *(flags[flag][run] for flag in flags)] for run in runs if flags)]


def _estimate(estimate: Estimate, style: str, sign: str = "") -> str:
    def written(value: float) -> str:
        text = f"{value:{sign}{style}}".removesuffix("%")
        return text.replace("-", "−")

    percent = " %" if style.endswith("%") and not sign else ""
    text = f"{written(estimate.value)}{percent}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} ({written(estimate.low)} to {written(estimate.high)})"


def _counts(contender: Contender) -> str:
    counts = contender.mcnemar
    return "" if counts is None else f"{counts.gained:,} to {counts.lost:,}"


def _p_value(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _remarks(comparison: Comparison) -> list[str]:
    """List caveats that the numbers do not show."""
    remarks = []
    steps, count = comparison.overlap, comparison.count
    if steps is not None and count < FEWEST_WINDOWS * steps:
        remarks.append(
            f"{count:,} {comparison.rows} that forecast {steps} steps each overlap too much for a "
            f"test or an interval, which need {FEWEST_WINDOWS * steps:,}; a larger --test-fraction "
            "or newer data give more."
        )
    alike = [
        each.name
        for each in comparison.contenders
        if each.mcnemar is not None and each.mcnemar.gained + each.mcnemar.lost == 0
    ]
    if alike:
        remarks.append(
            f"On each of these {comparison.rows} {' and '.join(alike)} and "
            f"{comparison.reference.name} are both right or both wrong, so that an interval of "
            "the difference has no width; other rows may tell them apart."
        )
    spotless = [each.name for each in comparison.contenders if _never_wrong(each, comparison)]
    if spotless:
        remarks.append(
            f"{' and '.join(spotless)} got none of the {count:,} {comparison.rows} wrong, and the "
            f"bootstrap cannot see beyond them: up to {3 / count:.2%} wrong would fit too (3 in "
            f"{count:,}, the rule of three)."
        )
    return remarks


def _never_wrong(contender: Contender, comparison: Comparison) -> bool:
    value = contender.measures[comparison.deciding].value
    return comparison.overlap is None and value.value == 1 and bool(np.isclose(value.low or 0, 1))


def _reading(comparison: Comparison) -> list[str]:
    name, first = comparison.reference.name, comparison.deciding
    better = [
        f"{measure} {'higher' if high else 'lower'}"
        for measure, high in comparison.higher_is_better.items()
    ]
    lines = [
        f"Better is: {', '.join(better)}. Differences are those of a model minus {name}.",
        *_method(comparison),
        f"The p-values are of {first}. Where several runs are compared with {name}, one of them "
        "may stand out by chance: `p (Holm)` allows for that, and *better* or *worse* means that "
        "it is below 0.05. Intervals are for one difference each and do not allow for it. *No "
        "difference shown* does not mean that there is none.",
        "All this is about chance in the test rows. Another seed gives another network, and how "
        "far such networks lie apart only several seeds can tell.",
    ]
    if any(not each.is_run for each in comparison.contenders):
        lines.append(f"Simple models are those beside {name}.")
    return lines


def _method(comparison: Comparison) -> Sequence[str]:
    steps = comparison.overlap
    if steps is None:
        return (
            "Intervals: percentiles of a paired bootstrap, in which every draw of rows is scored "
            "by all models.",
            "p: McNemar's test of the rows that one of two models gets right alone (*right "
            "alone*: the model's to the reference's); exact where these are fewer than 25.",
        )
    if comparison.count >= MANY_WINDOWS * steps:
        how = "with the correction of Harvey, Leybourne and Newbold (1997)"
    else:
        how = (
            "its variance from the lowest frequencies (Lazarus et al., 2018), as there are fewer "
            f"than {MANY_WINDOWS} windows to each of the {steps} steps"
        )
    return (
        f"Intervals and p: the Diebold-Mariano test (1995) of the errors of whole windows, {how}. "
        f"Windows overlap, and errors up to {steps - 1} windows apart count as related; where "
        "they are related further, the intervals are too narrow.",
    )


_COLOURS = {"better": "#0b63b5", "worse": "#c0392b"}
_UNDECIDED_COLOUR, _SIMPLE_COLOUR = "#444444", "#9a9a9a"
_MOST_LETTERS = 36


def draw_differences(comparison: Comparison, path: Path) -> None:
    """Draw a panel for each measure, with each model's difference and its interval.

    The reference is the line at zero. Simple models that are far off are placed at the edge, with
    an arrow and their value, so that the runs can be told apart.

    Args:
        comparison: Comparison of two or more runs.
        path: The PNG file.
    """
    others = comparison.contenders[1:]
    names = list(comparison.styles)
    figure = Figure(
        figsize=(3.0 + 3.3 * len(names), 1.75 + 0.36 * len(others)), dpi=120, layout="constrained"
    )
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        _draw_panel(axes, comparison, name)
    panels[0].set_yticks(range(len(others)), [_label(each.name) for each in others])
    panels[0].set_ylim(len(others) - 0.4, -0.6)
    figure.suptitle(
        f"Difference from {_label(comparison.reference.name)}, with 95 % intervals", fontsize=11
    )
    if any(each.verdict for each in others):
        figure.supxlabel(
            f"Blue: better, red: worse, by the test of {comparison.deciding} with Holm's correction"
            + ("; squares: simple models" if any(not each.is_run for each in others) else ""),
            fontsize=8, color=_UNDECIDED_COLOUR,
        )  # fmt: skip
    save_figure(figure, path)


def _draw_panel(axes: Axes, comparison: Comparison, name: str) -> None:
    scale = 100 if comparison.styles[name].endswith("%") else 1
    others = comparison.contenders[1:]
    differences = [
        each.measures[name].difference if name in each.measures else None for each in others
    ]
    runs = [found for each, found in zip(others, differences, strict=True) if each.is_run]
    low, high = _limits(runs, differences)
    axes.axvline(0, color="black", linewidth=1)
    for row, (each, found) in enumerate(zip(others, differences, strict=True)):
        verdict = each.verdict if name == comparison.deciding else ""
        colour = _COLOURS.get(verdict, _UNDECIDED_COLOUR) if each.is_run else _SIMPLE_COLOUR
        if found is None:
            continue
        if not low <= found.value <= high:
            _draw_far(axes, row, found.value * scale, found.value > high, colour)
            continue
        if found.low is not None and found.high is not None:
            ends = np.clip([found.low, found.high], low, high) * scale
            axes.plot(ends.tolist(), [row, row], color=colour, linewidth=2)
        axes.plot(found.value * scale, row, "o" if each.is_run else "s", color=colour, markersize=6)
    axes.set_xlim(low * scale, high * scale)
    arrow = "better →" if comparison.higher_is_better[name] else "← better"
    reference = comparison.reference.measures[name].value.value
    unit = "points" if scale == 100 else "difference"
    axes.set_title(name, fontsize=10)
    axes.set_xlabel(f"{unit} from {reference:{comparison.styles[name]}}, {arrow}", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter(FuncFormatter(_signed))
    axes.grid(axis="x", alpha=0.25)
    for row, each in enumerate(others):
        if row and not each.is_run and others[row - 1].is_run:
            axes.axhline(row - 0.5, color=_SIMPLE_COLOUR, linewidth=0.6, linestyle=":")


def _limits(
    runs: Sequence[Estimate | None], everyone: Sequence[Estimate | None]
) -> tuple[float, float]:
    """Choose limits that fit all runs, zero, and simple models that are not much further off."""
    needed = [0.0, *_ends(runs)]
    low, high = min(needed), max(needed)
    room = 1.5 * (high - low)
    near = [each for each in everyone if each and low - room <= each.value <= high + room]
    low, high = min([low, *_ends(near)]), max([high, *_ends(near)])
    margin = 0.08 * (high - low) or 0.01
    return low - margin, high + margin


def _ends(estimates: Sequence[Estimate | None]) -> list[float]:
    ends = [end for each in estimates if each for end in (each.low, each.value, each.high)]
    return [end for end in ends if end is not None]


def _draw_far(axes: Axes, row: int, value: float, right: bool, colour: str) -> None:
    text = _signed(value)
    axes.annotate(
        f"{text} ▸" if right else f"◂ {text}", (float(right), row),
        xycoords=("axes fraction", "data"), xytext=(-4 if right else 4, 0),
        textcoords="offset points", ha="right" if right else "left", va="center",
        color=colour, fontsize=8,
    )  # fmt: skip


def _signed(value: float, _: object = None) -> str:
    return f"{value:+.3g}".replace("-", "−") if value else "0"


def _label(name: str) -> str:
    """Shorten a long name in the middle: names of runs often differ at the end."""
    if len(name) > _MOST_LETTERS:
        half = _MOST_LETTERS // 2
        name = f"{name[: half - 1]}…{name[-half:]}"
    return name.replace("$", r"\$")
