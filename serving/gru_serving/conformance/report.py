"""The report of a run of the kit, as one page."""

import html
from collections.abc import Sequence

from gru_serving.conformance.case import RELEASE, Case
from gru_serving.conformance.differences import shown
from gru_serving.conformance.kit import DEVIATES, DOCUMENTED, NOT_OFFERED, SAME, Outcome, counts
from gru_serving.page import page

_MARKS = {SAME: "same", DOCUMENTED: "documented", DEVIATES: "deviates", NOT_OFFERED: "absent"}
_STYLE = (
    "body{max-width:76em}h2{font-size:1.05em}table{table-layout:fixed;border-collapse:collapse;width:100%;font-size:.9em}"
    "th,td{text-align:left;vertical-align:top;padding:.3em .8em .3em 0;overflow-wrap:anywhere;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}"
    "td.number,th.number{text-align:right}code{font-size:.9em}details{margin:.3em 0}"
    "summary{cursor:pointer}b{font-weight:600}"
    ".same{color:light-dark(#1a6e33,#6fdd8b)}.documented{color:light-dark(#7a5c00,#e3c15a)}"
    ".deviates{color:light-dark(#b3261e,#ff9a90)}.absent{color:light-dark(#57606a,#a3adb8)}"
)


def report_page(outcomes: Sequence[Outcome], server: str, seconds: float) -> str:
    """Return the page: a table of topics, then every case, those that deviate unfolded.

    Args:
        outcomes: Outcomes of all cases.
        server: Name or address of the server.
        seconds: Seconds that the run took.
    """
    found = counts(outcomes)
    topics = sorted({outcome.case.topic for outcome in outcomes})
    parts = [
        f"<h1>{html.escape(server)}: {found[SAME]} of {len(outcomes)} answers are those of "
        f"TensorFlow Serving</h1><p>Cases from the sources and tests of TensorFlow Serving "
        f"{RELEASE}; {seconds:.0f} s.</p>",
        _summary(outcomes, topics),
    ]
    for topic in topics:
        rows = [outcome for outcome in outcomes if outcome.case.topic == topic]
        same = [row for row in rows if row.verdict == SAME]
        others = [row for row in rows if row.verdict != SAME]
        title = f"{topic}: {len(same)} of {len(rows)} the same"
        parts.append(f"<h2>{html.escape(title)}</h2>")
        for some, opened, words in ((others, " open", "others"), (same, "", "the same")):
            if some:
                summary = f"<summary>{len(some)} {words}</summary>"
                parts.append(f"<details{opened}>{summary}{_table(some)}</details>")
    return page(f"Conformance of {server}", _STYLE, "".join(parts))


def _summary(outcomes: Sequence[Outcome], topics: Sequence[str]) -> str:
    head = "".join(f'<th class="number {_MARKS[verdict]}">{verdict}' for verdict in _MARKS)
    rows = []
    for topic in (*topics, "all"):
        found = counts(one for one in outcomes if topic in (one.case.topic, "all"))
        cells = "".join(f"<td class=number>{number}" for number in found.values())
        rows.append(f"<tr><th>{html.escape(topic)}{cells}")
    return f"<table><thead><tr><th>topic{head}<tbody>{''.join(rows)}</table>"


def _table(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        case = outcome.case
        file, _, place = case.source.partition(": ")
        source = f"<code>{html.escape(file)}</code> {html.escape(place)}"
        asked = shown(case.asked) if isinstance(case, Case) and case.asked else ""
        reason = f"<br><b>{html.escape(outcome.reason)}</b>" if outcome.reason else ""
        rows.append(
            f"<tr><td>{html.escape(case.name)}<br><small><code>{html.escape(asked)}</code></small>"
            f"<br><span class={_MARKS[outcome.verdict]}>"
            f"{outcome.verdict}</span><td>{html.escape(case.rule)}<br><small>{source}</small>"
            f"<td><code>{html.escape(outcome.said)}</code>{reason}"
        )
    head = "<tr><th>case<th>what TensorFlow Serving does<th>what the server said"
    return f"<table><thead>{head}<tbody>{''.join(rows)}</table>"
