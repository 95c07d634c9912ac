"""A trace as one page for the browser, which computes everything anew when a number is changed."""

import dataclasses
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.teaching.cells import Array
from keras_gru.teaching.network import Network, NetworkError
from keras_gru.teaching.page_file import write_page
from keras_gru.teaching.worked_example import Verdict, WorkedExample, target

TEMPLATE = Path(__file__).with_name("trace.html")


def write_trace_page(
    network: Network, path: Path, example: WorkedExample | None = None, variant: str | None = None
) -> None:
    """Write a page that holds all it needs: no other file, no server, no network.

    Args:
        network: The network to trace.
        path: Path of the page; an existing one is replaced.
        example: The worked example of the network; its printed numbers and errata are shown
            beside the computed ones.
        variant: Name of the example's variant.

    Raises:
        NetworkError: The network is not a GRU.
        OSError: The file cannot be written.
    """
    if network.cell_name != "gru":
        raise NetworkError(f"--html: expected the cell 'gru', got {network.cell_name!r}")
    page = TEMPLATE.read_text("utf-8")
    content = _content(network, example, variant)
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Nothing in a string can end the element that the data stand in.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    for mark, text in (
        ("__DATA__", data),
        ("__BODY__", "<noscript>This page needs JavaScript.</noscript>"),
        ("__TITLE__", html.escape(content["title"])),
    ):
        before, _, after = page.partition(mark)
        page = before + text + after
    write_page(path, page)


def network_content(network: Network) -> dict[str, Any]:
    """Convert a GRU's fields to plain values: arrays for row vectors, by gate."""
    names = [field.name for field in dataclasses.fields(network)]
    left_out = ("cell_name", "initial_cell", "note")
    return {name: _plain(getattr(network, name)) for name in names if name not in left_out}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _content(
    network: Network, example: WorkedExample | None, variant: str | None
) -> dict[str, Any]:
    title, section = "A small GRU, number by number", ""
    errata: list[dict[str, str]] = []
    verdicts: list[Verdict] = []
    if example is not None:
        title = str(example.content.get("title", example.name))
        section = str(example.content.get("section", ""))
        if variant:
            title = f"{title}, {variant}"
        errata = [
            {key: str(erratum.get(key, "")) for key in ("id", "kind", "cause")}
            for erratum in example.errata
        ]
        verdicts = example.verdicts
    causes = {erratum["id"]: erratum["cause"] for erratum in errata}
    claims = [_claim(v, causes) for v in verdicts if v.claim.get("variant") == variant]
    return {
        "title": title,
        "section": section,
        "network": network_content(network),
        "claims": [claim for claim in claims if claim is not None],
        "verdicts": [_listed(verdict) for verdict in verdicts],
        "errata": errata,
    }


def _listed(verdict: Verdict) -> dict[str, str]:
    return {
        "where": str(verdict.claim.get("where", "")),
        "quantity": verdict.quantity,
        "printed": _rounded(verdict.printed, verdict.decimals),
        "computed": _rounded(verdict.computed, verdict.decimals + 2),
        "status": verdict.status,
        "erratum": str(verdict.claim.get("erratum", "")),
    }


def _rounded(value: Array, decimals: int) -> str:
    return str(np.round(value, decimals).tolist())


def _claim(verdict: Verdict, causes: Mapping[str, str]) -> dict[str, Any] | None:
    """Locate the printed number in the trace; None for formulas and calculations."""
    if "calculation" in verdict.claim or "range" in verdict.claim:
        return None
    name, index, transposed = target(verdict.quantity)
    places = [] if index is Ellipsis else list(index) if isinstance(index, tuple) else [index]
    if not name.isidentifier() or not all(isinstance(place, int) for place in places):
        return None
    return {
        "name": name,
        "index": places,
        "transposed": transposed,
        "step": verdict.claim.get("step"),
        "where": str(verdict.claim.get("where", "")),
        "printed": verdict.printed.tolist(),
        "status": verdict.status,
        "cause": causes.get(str(verdict.claim.get("erratum", "")), ""),
    }
