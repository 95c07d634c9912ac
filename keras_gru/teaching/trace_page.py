"""A trace as one page for the browser, which computes everything anew when a number is changed."""

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_gru.teaching.network import Network
from keras_gru.teaching.network_fields import Array, NetworkError
from keras_gru.teaching.page_file import write_page
from keras_gru.teaching.worked_example import Verdict, WorkedExample, target

TEMPLATE = Path(__file__).with_name("trace.html")


def write_trace_page(
    network: Network, path: Path, example: WorkedExample | None = None, variant: str | None = None
) -> None:
    """Write a page that holds all it needs: no other file, no server, no network.

    Args:
        network: What is traced.
        path: Of the page; an old one is replaced.
        example: The worked example that the network is of; its printed numbers and errata are
            shown beside the computed ones.
        variant: The variant of the example.

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
    """The network as the page takes it: arrays for row vectors, by gate."""

    def by_gate(arrays: Mapping[str, Array]) -> dict[str, Any]:
        return {gate: array.tolist() for gate, array in arrays.items()}

    def listed(array: Array | None) -> Any:
        return None if array is None else array.tolist()

    return {
        "update_gate": network.update_gate,
        "reset_after": network.reset_after,
        "activation": network.activation,
        "recurrent_activation": network.recurrent_activation,
        "kernel": by_gate(network.kernel),
        "recurrent_kernel": by_gate(network.recurrent_kernel),
        "bias": by_gate(network.bias),
        "recurrent_bias": by_gate(network.recurrent_bias),
        "inputs": network.inputs.tolist(),
        "initial_state": network.initial_state.tolist(),
        "output_kernel": listed(network.output_kernel),
        "output_bias": listed(network.output_bias),
        "loss": network.loss,
        "targets": [listed(target) for target in network.targets],
        "reduction": network.reduction,
        "learning_rate": network.learning_rate,
        "tokens": list(network.tokens),
        "classes": list(network.classes),
    }


def _content(
    network: Network, example: WorkedExample | None, variant: str | None
) -> dict[str, Any]:
    title, section = "A small GRU, number by number", ""
    claims: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    errata: list[dict[str, Any]] = []
    if example is not None:
        title = str(example.content.get("title", example.name))
        section = str(example.content.get("section", ""))
        if variant:
            title = f"{title}, {variant}"
        errata = [
            {key: str(erratum.get(key, "")) for key in ("id", "kind", "cause")}
            for erratum in example.errata
        ]
        causes = {erratum["id"]: erratum["cause"] for erratum in errata}
        for verdict in example.verdicts:
            verdicts.append(_listed(verdict))
            found = _claim(verdict, causes) if verdict.claim.get("variant") == variant else None
            if found is not None:
                claims.append(found)
    return {
        "title": title,
        "section": section,
        "network": network_content(network),
        "claims": claims,
        "verdicts": verdicts,
        "errata": errata,
    }


def _listed(verdict: Verdict) -> dict[str, str]:
    return {
        "where": str(verdict.claim.get("where", "")),
        "quantity": verdict.quantity,
        "printed": _written(verdict.printed, verdict.decimals),
        "computed": _written(verdict.computed, verdict.decimals + 2),
        "status": verdict.status,
        "erratum": str(verdict.claim.get("erratum", "")),
    }


def _written(value: Array, decimals: int) -> str:
    return str(np.round(value, decimals).tolist())


def _claim(verdict: Verdict, causes: Mapping[str, str]) -> dict[str, Any] | None:
    """Where the printed number stands in the trace; None for formulas and calculations."""
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
