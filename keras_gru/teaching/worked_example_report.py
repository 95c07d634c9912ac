"""The worked examples in tables and as one Markdown document, and the texts that they quote."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from keras_gru.teaching.cells import Array
from keras_gru.teaching.page_file import table_lines, write_page
from keras_gru.teaching.worked_example import (
    AGREES,
    CARRIED,
    DIFFERS,
    Verdict,
    WorkedExample,
    example_folder,
)


def read_texts() -> dict[str, Any]:
    """Read the introduction, and the texts with the published conventions that they follow."""
    return tomllib.loads((example_folder() / "texts.toml").read_text(encoding="utf-8"))


def summary_table(examples: Sequence[WorkedExample]) -> Table:
    """Tabulate the examples: counts of numbers by verdict, and of errata."""
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in ("lines", "agree", "rounding", "differ", "errata"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("title")
    for example in examples:
        count = Counter(verdict.status for verdict in example.verdicts)
        counts = [len(example.verdicts), count[AGREES], count[CARRIED], count[DIFFERS]]
        numbers = (str(number) for number in (*counts, len(example.errata)))
        table.add_row(example.name, *numbers, example.content["title"])
    return table


def texts_table() -> Table:
    """Tabulate the texts: title and content of each."""
    texts = read_texts()["texts"]
    return _plain_table((text["name"], f"{text['title']}: {text['about']}") for text in texts)


def variants_table(examples: Sequence[WorkedExample]) -> Table:
    """Tabulate the variants of the examples' networks."""
    return _plain_table(_variant_rows(examples))


def _plain_table(rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in rows:
        while len(table.columns) < len(row):
            table.add_column(no_wrap=len(table.columns) < len(row) - 1)
        table.add_row(*row)
    return table


def _variant_rows(examples: Sequence[WorkedExample]) -> Iterator[tuple[str, str, str]]:
    for example in examples:
        yield from ((example.name, name, about) for name, about in example.variants.items())


def write_markdown(examples: Sequence[WorkedExample], path: Path) -> None:
    """Write `markdown(examples)` to a file atomically."""
    write_page(path, markdown(examples))


def markdown(examples: Sequence[WorkedExample]) -> str:
    """Compose the whole document."""
    content = read_texts()
    lines = [content["introduction"], "## The texts", "", *_conventions(content["texts"]), ""]
    lines += [
        "## Inventory",
        "",
        *_inventory(examples),
        "",
        "### Variants",
        "",
        *_variants(examples),
        "",
    ]
    lines += ["## Errata", ""]
    lines += [
        "Each erratum about a printed number is confirmed by the trace and by a second "
        "derivation of it (tape and central differences), each of the others by a test or a "
        "calculation of its own.",
        "",
        *_errata(examples),
        "",
        "## Number by number",
    ]
    for example in examples:
        lines += ["", *_example(example)]
    return "\n".join(lines) + "\n"


def _conventions(texts: Sequence[dict[str, str]]) -> Iterator[str]:
    heading = "text", "its head", "what it is", "update gate", "credited to", "reset gate", "loss"
    fields = "name", "title", "about", "update_gate", "credited", "reset", "reduction"
    numbers = {"update_gate": {"keep": " (4a)", "replace": " (4b)"}}
    rows = [
        [t[field] + numbers.get(field, {}).get(t[field], "") for field in fields] for t in texts
    ]
    yield from table_lines(heading, rows)
    yield ""
    yield "Cho et al. 2014 (arXiv:1406.1078, equation (7)) keep the old state with z, as Keras,"
    yield "PyTorch and ONNX do; Chung et al. 2014 (arXiv:1412.3555, equation (5)) replace it with"
    yield "z. With the logistic function the two are one GRU with the weights of z negated."


def _variants(examples: Sequence[WorkedExample]) -> Iterator[str]:
    yield "`python -m keras_gru trace NAME --variant VARIANT`; `trace --cell lstm` takes the"
    yield "variant of de_to_p that has this cell."
    yield ""
    yield from table_lines(("example", "variant", "what it is"), _variant_rows(examples))


def _inventory(examples: Sequence[WorkedExample]) -> Iterator[str]:
    heading = "example", "text, section", "lines:", "agree:", "rounding:", "differ:"
    rows, total = [], Counter[str]()
    for example in examples:
        count = Counter(verdict.status for verdict in example.verdicts)
        total += count
        network = example.network()
        tested = "arithmetic" if network is None else "trace, tape, differences"
        if network is not None and network.cell_name == "gru":
            tested += ", layer"
        if "also_tested" in example.content:
            tested += f", {example.content['also_tested']}"
        link = f"[{example.name}](worked_examples/{example.name}.json)"
        place = f"{example.content['text']}: {example.content['section']}"
        ids = ", ".join(erratum["id"] for erratum in example.errata)
        rows.append([link, place, *_counts(count), ids, tested])
    yield from table_lines((*heading, "errata", "tested"), rows)
    yield f"| all | | {' | '.join(_counts(total))} | | |"


def _counts(count: Counter[str]) -> list[str]:
    """Write the number of lines, and of those of each status."""
    return [str(count.total()), *(str(count[status]) for status in (AGREES, CARRIED, DIFFERS))]


def _errata(examples: Sequence[WorkedExample]) -> Iterator[str]:
    for example in examples:
        for erratum in example.errata:
            yield f"### {erratum['id']}: {erratum['kind']}"
            yield ""
            yield f"{example.content['text']}, {erratum['where']} (equation {erratum['equation']})."
            yield ""
            if "says" in erratum:
                yield f"- The text: {erratum['says']}"
                yield f"- Correct: {erratum['correct']}"
            yield f"- Cause: {erratum['cause']}"
            accused = [v for v in example.verdicts if v.claim.get("erratum") == erratum["id"]]
            if accused:
                rows = [_cells(v, _numbers(v.computed, v.decimals)) for v in accused]
                yield ""
                yield from table_lines(("where", "quantity", "text", "ours"), rows)
            yield ""


def _example(example: WorkedExample) -> Iterator[str]:
    yield f"### {example.name}: {example.content['title']}"
    yield ""
    yield f"{example.content['text']}, {example.content['section']}."
    yield ""
    rows = []
    for verdict in example.verdicts:
        said = verdict.status
        if "erratum" in verdict.claim:
            said += f", {verdict.claim['erratum']}"
        rows.append(_cells(verdict, _numbers(verdict.computed, verdict.decimals + 2), said))
    for fact in example.content.get("shapes", []):
        printed = "; ".join(f"{name} {tuple(shape)}" for name, shape in fact["printed"].items())
        given = f"shapes for inputs {tuple(fact['inputs'])}"
        rows.append([fact["where"], given, printed, printed, AGREES])
    yield from table_lines(("where", "quantity", "text", "ours", "verdict"), rows)


def _cells(verdict: Verdict, *more: str) -> list[str]:
    also = verdict.claim.get("also")
    where = str(verdict.claim["where"]) + (f" (again: {', '.join(also)})" if also else "")
    return [where, f"`{_quantity(verdict)}`", _text(verdict), *more]


def _quantity(verdict: Verdict) -> str:
    step = verdict.claim.get("step")
    quantity = verdict.quantity if step is None else f"step {step}: {verdict.quantity}"
    variant = verdict.claim.get("variant")
    return quantity if variant is None else f"{quantity} ({variant})"


def _text(verdict: Verdict) -> str:
    if "range" in verdict.claim:
        low, high = verdict.printed
        return f"{low:.{verdict.decimals}f} to {high:.{verdict.decimals}f}"
    if "quantity" in verdict.claim and "printed" not in verdict.claim:
        return "not printed"
    return _numbers(verdict.printed, verdict.decimals)


def _numbers(values: Array, decimals: int) -> str:
    if values.ndim == 0:
        return f"{float(np.round(values, decimals)) + 0.0:.{decimals}f}"
    return f"[{', '.join(_numbers(value, decimals) for value in values)}]"
