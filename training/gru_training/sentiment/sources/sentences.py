"""Documents cut into sentences, by a rule."""

import re

_PARAGRAPH = re.compile(r"(?:<br\s*/?>\s*)+|\n+", re.IGNORECASE)
_BOUNDARY = re.compile(r"(?<![.!?…])([.!?…]+[\"'”’)\]]*)\s+(?=[\"'“‘(\[]*[A-Z0-9])")
_ABBREVIATION = re.compile(r"(?:^|[\s(\"'])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Vol)\.$")

_LONGEST = 7
"""Letters that say whether a sentence ends with an abbreviation."""


def sentences(text: str) -> list[str]:
    """The sentences of a text.

    One ends at a full stop, question or exclamation mark, and closing quotes or brackets, before a
    blank and a capital or a digit; and where a line or, as in HTML, a paragraph does. Initials and
    common titles (*J. Smith*, *Dr. No*) end none.
    """
    found = []
    for paragraph in _PARAGRAPH.split(text):
        start = 0
        for boundary in _BOUNDARY.finditer(paragraph):
            end = boundary.end(1)
            if not _ABBREVIATION.search(paragraph[max(start, end - _LONGEST) : end]):
                found.append(paragraph[start:end].strip())
                start = boundary.end()
        found.append(paragraph[start:].strip())
    return [sentence for sentence in found if sentence]
