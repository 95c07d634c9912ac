"""Questions about reviews: only the order of their words tells the labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demo.server import ask
from demo.terminal import console

_PAIRS = 4


def ask_about_reviews(run: Path, rest: str, grpc: str) -> int:
    """Ask about pairs of held-out reviews that are made of the same words.

    Returns:
        How many answers are wrong.
    """
    from rich.table import Table

    pairs = _same_words_pairs(run)[:_PAIRS]
    rows = [row for pair in pairs for row in pair]
    answers = ask(rest, grpc, "sentiment", {"text": [row["text"] for row in rows]})
    table = Table(title="Held-out reviews: the two of each pair have the same words")
    table.add_column("review", ratio=1)
    table.add_column("label")
    for transport in answers:
        table.add_column(f"{transport} answer", no_wrap=True)
    wrong = 0
    for i, row in enumerate(rows):
        cells = []
        for answer in answers.values():
            label = answer["label"][i].decode()
            colour = "green" if label == row["label"] else "red"
            wrong += label != row["label"]
            cells.append(f"[{colour}]{label} {answer['probability'][i]:.3f}[/{colour}]")
        table.add_row(row["text"], row["label"], *cells, end_section=i % 2 == 1)
    console().print(table)
    return wrong


def _same_words_pairs(run: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of test rows that have the same words in another order, and opposite labels."""
    pairs, seen = [], {}
    with (run / "test_predictions.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            words = "".join(c if c.isalnum() or c == "'" else " " for c in row["text"].lower())
            key = tuple(sorted(words.split()))
            other = seen.setdefault(key, row)
            if other["label"] != row["label"]:
                pairs.append((other, row))
                del seen[key]
    return sorted(pairs, key=lambda pair: len(pair[0]["text"]))
