"""The report of a comparison: tables, plots, and whether the GRU was better or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from keras_gru.missing_extra import naming_extra
from keras_gru.teaching.comparison import (
    ARCHITECTURES,
    SOLVED_LOSS,
    WINDOW,
    WORD,
    ComparisonConfig,
    Run,
    context_baseline,
    read_corpus,
)
from keras_gru.teaching.page_file import table_lines, write_page

_COLOURS = dict(
    zip(ARCHITECTURES, ("#7f7f7f", "#1f77b4", "#d62728", "#2ca02c", "#9467bd"), strict=True)
)
Rows = list[list[str]]


def write_runs(config: ComparisonConfig, runs: Sequence[Run], folder: Path) -> None:
    """Write runs.json: the configuration and every run so far, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "config": {**asdict(config), "corpus": str(config.corpus) if config.corpus else None},
        "runs": [asdict(run) for run in runs],
    }
    write_page(folder / "runs.json", json.dumps(content, indent=1))


def write_report(config: ComparisonConfig, runs: Sequence[Run], folder: Path) -> Path:
    """Write report.md and the plots; returns the report's path.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.md"
    write_page(report, markdown(config, runs, _plots(runs, folder)))
    return report


def markdown(config: ComparisonConfig, runs: Sequence[Run], pictures: Sequence[str] = ()) -> str:
    """Compose the report as Markdown."""
    same = "the same" if config.match == "units" else "about the same"
    what = "units" if config.match == "units" else "parameters"
    lines = [
        "# Five recurrent cells side by side",
        "",
        f"All cells have {same} number of {what} and run in the same Keras loop, so times compare "
        "the cells and not their best implementations. Adam, "
        f"learning rate {config.learning_rate:g}, gradient norm clipped to 1, "
        f"batches of {config.batch_size}, at most {config.updates} updates, "
        f"{config.seeds} seed{'s' if config.seeds > 1 else ''}, Keras' default initialisation. "
        "All cells have the same learning rate; another rate may change the order.",
        "",
        "## Findings",
        "",
        *(f"- {finding}" for finding in findings(runs)),
    ]
    for title, (heading, rows) in tables(config, runs).items():
        lines += ["", f"## {title}", "", *table_lines(heading, rows)]
    for picture in pictures:
        lines += ["", f"![{picture}]({picture})"]
    return "\n".join(lines) + "\n"


def tables(config: ComparisonConfig, runs: Sequence[Run]) -> dict[str, tuple[list[str], Rows]]:
    """Compose the tables: headings and rows by title."""
    found: dict[str, tuple[list[str], Rows]] = {}
    for length, chosen in _by_length(_of(runs, "adding")):
        heading = ["cell", "units", "parameters", "solved", "updates until solved"]
        heading += ["last error", "ms per update"]
        found[f"Adding problem, {length} steps"] = (heading, list(_adding_rows(chosen)))
    if chosen := _of(runs, "word"):
        heading = ["cell", "units", "parameters", "learnt", "updates until learnt", "accuracy"]
        found[f'Auto-completion of "{WORD}"'] = (heading, list(_word_rows(chosen)))
    if chosen := _of(runs, "corpus"):
        heading = ["model", "units", "parameters", "accuracy", "bits per character"]
        rows = list(_corpus_rows(chosen))
        text = read_corpus(config.corpus)
        for order in range(5):
            accuracy, bits = context_baseline(text, order)
            name = f"counting, {order} characters of context"
            rows.append([name, "", "", f"{100 * accuracy:.1f} %", f"{bits:.3f}", ""])
        title = f"Next character of a text of {len(text):,} characters, held-out last tenth"
        found[title] = ([*heading, "ms per update"], rows)
    return found


def findings(runs: Sequence[Run]) -> list[str]:
    """Write one sentence per task about the GRU, from the medians over seeds."""
    sentences = []
    for length, chosen in _by_length(_of(runs, "adding")):
        sentences.append(f"Adding, {length} steps: {_order(chosen)}")
    sentences += _gradient_findings([run for run in runs if run.gradient_after])
    if chosen := _of(runs, "word"):
        sentences.append(f'"{WORD}": {_order(chosen)}')
    if chosen := _of(runs, "corpus"):
        bits = {name: median(r.bits or 0.0 for r in group) for name, group in _groups(chosen)}
        ranked = sorted(bits, key=lambda name: bits[name])
        order = ", ".join(f"{name} {bits[name]:.3f}" for name in ranked)
        verdict = _verdict(ranked)
        sentences.append(f"Corpus, bits per character: {order}. {verdict}")
    return sentences


def _gradient_findings(runs: Sequence[Run]) -> Iterator[str]:
    """Compare the share of the last state's gradient that reaches the first, at the longest."""
    longest = max((run.length for run in runs), default=0)
    for moment, attribute in (("before", "gradient_before"), ("after", "gradient_after")):
        shares = {
            name: median(getattr(run, attribute)[0] for run in group)
            for name, group in _groups([run for run in runs if run.length == longest])
        }
        if shares:
            ranked = sorted(shares, key=lambda name: -shares[name])
            order = ", ".join(f"{name} {shares[name]:.2g}" for name in ranked)
            yield (
                f"Gradient left after {longest - 1} steps, {moment} training (1 at the last "
                f"state): {order}."
            )


def _order(runs: Sequence[Run]) -> str:
    solved, never = {}, []
    for name, group in _groups(runs):
        after = [run.solved_after for run in group]
        reached = [updates for updates in after if updates is not None]
        if 2 * len(reached) > len(after):
            solved[name] = median(reached)
        else:
            never.append(name)
    ranked = sorted(solved, key=lambda name: solved[name])
    sentence = ", ".join(f"{name} after {solved[name]:.0f}" for name in ranked)
    sentence = f"solved by {sentence} updates" if ranked else "solved by none"
    if never and ranked:
        sentence += f"; not by {', '.join(never)}"
    return f"{sentence}. {_verdict(ranked)}"


def _verdict(ranked: Sequence[str]) -> str:
    if "GRU" not in ranked:
        return "The GRU did not solve it."
    if ranked[0] == "GRU":
        if len(ranked) == 1:
            return "Only the GRU solved it."
        return "The GRU needed the fewest updates."
    ahead = ", ".join(ranked[: ranked.index("GRU")])
    return f"The GRU has no advantage over: {ahead}."


def _of(runs: Sequence[Run], task: str) -> list[Run]:
    return [run for run in runs if run.task == task]


def _by_length(runs: Sequence[Run]) -> list[tuple[int, list[Run]]]:
    lengths = sorted({run.length for run in runs})
    return [(length, [run for run in runs if run.length == length]) for length in lengths]


def _groups(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    for name in ARCHITECTURES:
        group = [run for run in runs if run.architecture == name]
        if group:
            yield name, group


def _size(group: Sequence[Run]) -> list[str]:
    return [f"{group[0].units}", f"{group[0].parameters:,}"]


def _solved(group: Sequence[Run]) -> list[str]:
    reached = [run.solved_after for run in group if run.solved_after is not None]
    middle = f"{median(reached):.0f}" if reached else "–"
    spread = f" ({min(reached)}–{max(reached)})" if len(reached) > 1 else ""
    return [f"{len(reached)} of {len(group)}", middle + spread]


def _speed(group: Sequence[Run]) -> str:
    return f"{1000 * median(run.seconds / max(1, run.updates - 1) for run in group):.1f}"


def _adding_rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    for name, group in _groups(runs):
        last = median(float(np.mean(run.losses[-WINDOW:])) for run in group)
        yield [name, *_size(group), *_solved(group), f"{last:.4f}", _speed(group)]


def _word_rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    for name, group in _groups(runs):
        accuracy = median(run.accuracy or 0.0 for run in group)
        yield [name, *_size(group), *_solved(group), f"{100 * accuracy:.0f} %"]


def _corpus_rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    for name, group in _groups(runs):
        accuracy = median(run.accuracy or 0.0 for run in group)
        bits = [run.bits or 0.0 for run in group]
        spread = f" ({min(bits):.3f}–{max(bits):.3f})" if len(bits) > 1 else ""
        cells = [f"{100 * accuracy:.1f} %", f"{median(bits):.3f}{spread}", _speed(group)]
        yield [name, *_size(group), *cells]


def _plots(runs: Sequence[Run], folder: Path) -> list[str]:
    with naming_extra("plot", "matplotlib"):
        import matplotlib

    matplotlib.use("Agg")
    written = []
    if adding := _of(runs, "adding"):
        written += [_plot_adding(adding, folder), _plot_gradients(adding, folder)]
    if characters := [*_of(runs, "word"), *_of(runs, "corpus")]:
        written.append(_plot_characters(characters, folder))
    return written


def _plot_adding(runs: Sequence[Run], folder: Path) -> str:
    lengths = _by_length(runs)
    figure, axes = _figure(len(lengths))
    for axis, (length, chosen) in zip(axes, lengths, strict=True):
        _curves(axis, chosen)
        axis.axhline(1 / 6, color="black", linewidth=0.8, linestyle=":", label="guessing 1")
        axis.axhline(SOLVED_LOSS, color="black", linewidth=0.8, linestyle="--", label="solved")
        axis.set(title=f"Adding problem, {length} steps", xlabel="updates", yscale="log")
    axes[0].set_ylabel(f"squared error, mean of {WINDOW} updates")
    return _save(figure, axes[-1], folder / "adding.png")


def _plot_gradients(runs: Sequence[Run], folder: Path) -> str:
    longest = max(run.length for run in runs)
    figure, axes = _figure(2)
    moments = {"before training": "gradient_before", "after training": "gradient_after"}
    for axis, (title, attribute) in zip(axes, moments.items(), strict=True):
        for name, group in _groups([run for run in runs if run.length == longest]):
            norms = np.maximum([getattr(run, attribute) for run in group], 1e-30)
            middle = np.exp(np.mean(np.log(norms), axis=0))
            axis.plot(np.arange(1, longest + 1), middle, color=_COLOURS[name], label=name)
        axis.set(title=f"Gradient reaching each state, {title}", xlabel="step", yscale="log")
    axes[0].set_ylabel("‖∂L/∂state‖, last step = 1")
    return _save(figure, axes[-1], folder / "gradient_flow.png")


def _plot_characters(runs: Sequence[Run], folder: Path) -> str:
    tasks = [task for task in ("word", "corpus") if _of(runs, task)]
    figure, axes = _figure(len(tasks))
    titles = {"word": f'Auto-completion of "{WORD}"', "corpus": "Next character of a text"}
    for axis, task in zip(axes, tasks, strict=True):
        window = 1 if task == "word" else WINDOW
        _curves(axis, _of(runs, task), window)
        axis.set(title=titles[task], xlabel="updates", ylabel="cross-entropy in training, nats")
    return _save(figure, axes[-1], folder / "characters.png")


def _curves(axis: Any, runs: Sequence[Run], window: int = WINDOW) -> None:
    for name, group in _groups(runs):
        for i, run in enumerate(group):
            width = min(window, len(run.losses))
            smooth = np.convolve(run.losses, np.ones(width) / width, mode="valid")
            updates = np.arange(width, len(run.losses) + 1)
            label = name if i == 0 else None
            axis.plot(updates, smooth, color=_COLOURS[name], alpha=0.8, label=label)


def _figure(panels: int) -> tuple[Any, list[Any]]:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, panels, figsize=(4.6 * panels, 4.1), squeeze=False, layout="constrained"
    )
    return figure, list(axes[0])


def _save(figure: Any, labelled: Any, path: Path) -> str:
    from matplotlib import pyplot

    lines, labels = labelled.get_legend_handles_labels()
    figure.legend(
        lines, labels, loc="outside lower center", ncols=7, fontsize="small", frameon=False
    )
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path.name
