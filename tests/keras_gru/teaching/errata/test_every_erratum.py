"""Every erratum is confirmed by two independent calculations.

Errata about printed numbers are confirmed in ../test_worked_examples.py, by a tape and by central
differences; the others in the files beside this one.
"""

import re
from pathlib import Path

from keras_gru.teaching.worked_example import load_examples


def test_every_erratum_is_confirmed_and_numbered():
    confirmed = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for identifiers in re.findall(r"@confirms\(([^)]*)\)", path.read_text("utf-8")):
            confirmed |= set(re.findall(r'"([^"]+)"', identifiers))
    found = []
    for example in load_examples():
        for erratum in example.errata:
            numeric = any(claim.get("erratum") == erratum["id"] for claim in example.claims)
            assert numeric or erratum["id"] in confirmed, erratum["id"]
            found.append(erratum["id"])
    assert len(set(found)) == len(found)
    assert confirmed <= set(found)
