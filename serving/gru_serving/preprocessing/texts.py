r"""The steps from texts to tokens and word ids.

A `Tokenizer` is a list of changes of a text, the last of which finds the tokens. Patterns use the
part of RE2's syntax that Python shares, and `\p{L}`, whose characters come from a table:
TensorFlow's tables of Unicode are of its own version, and so are these.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.description import DataFile, Described, Files, Step, Values

PADDING, UNKNOWN = 0, 1
RESERVED = ("[PAD]", "[UNK]")
"""Names of ids 0 and 1 in files; no text yields such a token, since brackets stand alone."""

ATTACHED = "##"
"""Mark of tokens that do not follow a blank, if this is to be distinguished."""
_LEAST_BEGINNING = 4
"""Fewest letters by which an unknown word is taken for a known one that begins alike."""
_LONGEST_BEGINNING = 32
"""Most letters of a beginning: all those of a word of thousands of letters would fill memory."""
_MOST_ENDING = 6
"""Most letters of an unknown word that may be another's, and no more than three in ten."""
_POINTS = 0x110000
"""Number of code points of Unicode."""
_ENTITY = b"&"
"""Begin of every key in an exchange."""
_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = "Σ", "σ", "ς"
_CLASS = re.compile(r"\\p\{(\w+)\}")
_BRACKETS = re.compile(r"\[(?:\\.|[^\]\\])*\]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f](?:-[^\x00-\x7f])?")


@dataclass(frozen=True)
class UnicodeTables:
    r"""Unicode characters as TensorFlow treats them, for runtimes without it.

    Computed once by TensorFlow.

    Attributes:
        classes: Characters of each class, such as `L` of `\p{L}`, as in brackets of a pattern.
        lower: Characters that have a lower case, each by that.
        cased: Characters behind which a Σ ends a word, as in brackets of a pattern.
        passed: Characters that do not count for that.
    """

    classes: Mapping[str, str] = field(default_factory=dict)
    lower: Mapping[str, str] = field(default_factory=dict)
    cased: str = ""
    passed: str = ""

    def compile(self, pattern: str, ascii_only: bool = False) -> re.Pattern[str] | None:
        """Compile a pattern.

        For texts of ASCII alone, small character classes are several times as fast.

        Returns:
            Compiled pattern; None if it matches no such text.
        """
        whole = _CLASS.sub(lambda found: self.classes[found[1]], pattern)
        if ascii_only:
            whole = _BRACKETS.sub(lambda found: _NOT_ASCII.sub("", found[0]), whole)
            if "[]" in whole:
                return None
        return re.compile(whole, re.ASCII)


TextChange = Callable[[str], str]


class TextStep(Described, ABC):
    """A change of texts that is the same in both runtimes."""

    @abstractmethod
    def python(self, tables: UnicodeTables, ascii_only: bool) -> Callable[[str], Any] | None:
        """Return the change of one text, for texts of ASCII alone or for any.

        None if nothing changes.
        """

    @abstractmethod
    def graph(self, texts: Any) -> Any:
        """Change texts (B,) of UTF-8 by TensorFlow operations."""


@dataclass(frozen=True)
class Replace(TextStep, kind="replace"):
    r"""Replaces all matches of a pattern.

    Attributes:
        pattern: Pattern of RE2.
        by: Text in its place, in which `\0` is the match and `\1` its first group.
    """

    pattern: str
    by: str

    def python(self, tables: UnicodeTables, ascii_only: bool) -> TextChange | None:
        """Return the substitution."""
        pattern = tables.compile(self.pattern, ascii_only)
        return pattern and partial(pattern.sub, self.by.replace(r"\0", r"\g<0>"))

    def graph(self, texts: Any) -> Any:
        """Replace in texts (B,)."""
        import tensorflow as tf

        return tf.strings.regex_replace(texts, self.pattern, self.by)


@dataclass(frozen=True)
class Cut(TextStep, kind="cut"):
    """Removes what stands between two patterns, and their matches.

    Attributes:
        between: Patterns, without groups, that open and close.
        by: Text in place of what is cut.
    """

    between: tuple[tuple[str, str], ...]
    by: str

    def python(self, tables: UnicodeTables, ascii_only: bool) -> TextChange:
        """Return the removal by the pattern `opening.*?closing`, in one pass in any case."""
        pairs = [[tables.compile(each, ascii_only) for each in pair] for pair in self.between]
        openings = "|".join(f"({pair[0].pattern})" for pair in pairs if pair[0])
        opening = re.compile(openings, re.ASCII)
        closings = [pair[1] for pair in pairs]

        def cut(text: str) -> str:
            kept = list[str]()
            done = place = 0
            closed = dict[int, bool]()  # whether there may be a closing further on, by kind
            while opened := opening.search(text, place):
                kind = (opened.lastindex or 1) - 1
                closing = closings[kind]
                assert closing is not None
                end = closing.search(text, opened.end()) if closed.get(kind, True) else None
                if end is None:
                    closed[kind] = False
                    place = opened.start() + 1
                    continue
                kept += (text[done : opened.start()], self.by)
                done = place = end.end()
            return "".join((*kept, text[done:])) if kept else text

        return cut

    def graph(self, texts: Any) -> Any:
        """Cut the texts (B,)."""
        import tensorflow as tf

        whole = "|".join(f"{opening}(?s:.*?){closing}" for opening, closing in self.between)
        return tf.strings.regex_replace(texts, whole, self.by)


@dataclass(frozen=True)
class Exchange(TextStep, kind="exchange"):
    """Replaces several patterns by a text each.

    Attributes:
        pairs: Patterns of ASCII without groups, with the text in place of each. None is part of
            another, nor made by what takes the place of another but by that of the last one.
    """

    pairs: tuple[tuple[str, str], ...]

    def python(self, tables: UnicodeTables, ascii_only: bool) -> TextChange | None:  # noqa: ARG002
        """Return the exchange in one pass.

        ASCII texts with any match are treated like other texts.
        """
        if ascii_only:
            return None
        pattern = re.compile("|".join(f"({pattern})" for pattern, _ in self.pairs), re.ASCII)
        texts = ["", *(text for _, text in self.pairs)]
        return partial(pattern.sub, lambda found: texts[found.lastindex or 0])

    def graph(self, texts: Any) -> Any:
        """Replace the patterns in texts (B,), one after the other."""
        import tensorflow as tf

        for pattern, text in self.pairs:
            texts = tf.strings.regex_replace(texts, pattern, text)
        return texts


@dataclass(frozen=True)
class Normalise(TextStep, kind="normalise"):
    """Replaces characters of the same meaning by a single one.

    Attributes:
        characters: Characters, each with what it becomes.
        pairs: Two characters each, with the one that they become; no second one is a first one.
        passes: Number of passes over the pairs: what a pair becomes may be the first of another.
    """

    characters: tuple[tuple[str, str], ...]
    pairs: tuple[tuple[str, str], ...]
    passes: int

    def python(self, tables: UnicodeTables, ascii_only: bool) -> TextChange | None:  # noqa: ARG002
        """Return the change; None for ASCII."""
        if ascii_only:
            return None
        changed, pairs = str.maketrans(dict(self.characters)), dict(self.pairs)
        firsts, seconds = (re.escape("".join(sorted({pair[i] for pair in pairs}))) for i in (0, 1))
        second, pair = re.compile(f"[{seconds}]").search, re.compile(f"[{firsts}][{seconds}]")

        def normalise(text: str) -> str:
            text = text.translate(changed)
            if second(text):
                for _ in range(self.passes):
                    text = pair.sub(lambda found: pairs.get(found[0], found[0]), text)
            return text

        return normalise

    def graph(self, texts: Any) -> Any:
        """Normalise texts (B,); ASCII texts stay as they are."""
        import tensorflow as tf

        places = tf.where(tf.strings.regex_full_match(texts, r"(?s).*[^\x00-\x7F].*"))  # (K, 1)
        decoded = tf.strings.unicode_decode(tf.gather_nd(texts, places), "UTF-8")
        points, rows = self._composed(*self._replaced(decoded.flat_values, decoded.value_rowids()))
        # Assertions that hold by construction are left out of the graph, which they would double.
        changed = tf.RaggedTensor.from_value_rowids(points, rows, decoded.nrows(), validate=False)
        encoded = tf.strings.unicode_encode(changed, "UTF-8")
        return tf.tensor_scatter_nd_update(texts, places, encoded)

    def _replaced(self, points: Any, rows: Any) -> tuple[Any, Any]:
        """Replace code points (N,) int32 of texts `rows` (N,); returns (M,) and (M,)."""
        import tensorflow as tf

        keys, starts, values = (tf.constant(each) for each in self._table)
        place = tf.minimum(tf.searchsorted(keys, points), len(self.characters) - 1)
        found = tf.equal(tf.gather(keys, place), points)
        begin = tf.where(found, tf.gather(starts, place), 0)
        length = tf.where(found, tf.gather(starts, place + 1) - begin, 1)
        # For each new character: the old one it comes from, and its position in the replacement.
        source = tf.repeat(tf.range(tf.size(points)), length)
        number = tf.range(tf.size(source)) - tf.gather(tf.cumsum(length, exclusive=True), source)
        other = tf.gather(values, tf.gather(begin, source) + number)
        new = tf.where(tf.gather(found, source), other, tf.gather(points, source))
        return new, tf.gather(rows, source)

    def _composed(self, points: Any, rows: Any) -> tuple[Any, Any]:
        """Compose pairs of code points (N,) int32 of texts `rows` (N,); returns (M,) and (M,)."""
        import tensorflow as tf

        pairs, joined = (tf.constant(each) for each in self._joined)
        for _ in range(self.passes):
            after = tf.concat([points[1:], [0]], 0)[: tf.size(points)]
            same = tf.equal(tf.concat([rows[1:], [-1]], 0)[: tf.size(rows)], rows)
            key = tf.cast(points, tf.int64) * _POINTS + tf.cast(after, tf.int64)
            place = tf.minimum(tf.searchsorted(pairs, key), len(self.pairs) - 1)
            join = same & tf.equal(tf.gather(pairs, place), key)
            values = tf.where(join, tf.gather(joined, place), points)
            kept = tf.concat([[True], ~join], 0)[: tf.size(join)]  # but for what has been joined
            left = tf.squeeze(tf.where(kept), 1)
            points, rows = tf.gather(values, left), tf.gather(rows, left)
        return points, rows

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Code points in ascending order (P,), starts of the replacements (P + 1,), and these."""
        found = sorted(self.characters)
        starts = np.cumsum([0, *(len(text) for _, text in found)])
        values = [ord(character) for _, text in found for character in text]
        keys = [ord(character) for character, _ in found]
        return np.array(keys, np.int32), starts.astype(np.int32), np.array(values, np.int32)

    @cached_property
    def _joined(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs in ascending order (Q,) int64, and the character that each becomes (Q,) int32."""
        found = sorted((ord(pair[0]) * _POINTS + ord(pair[1]), ord(by)) for pair, by in self.pairs)
        keys, values = zip(*found, strict=True)
        return np.array(keys, np.int64), np.array(values, np.int32)


@dataclass(frozen=True)
class Lower(TextStep, kind="lower"):
    """Converts to lower case.

    The only character whose conversion depends on its neighbours is Σ (Unicode, table 3-17,
    Final_Sigma): it becomes ς after a cased letter and before none, where case-ignorable characters
    are skipped.
    """

    def python(self, tables: UnicodeTables, ascii_only: bool) -> TextChange:
        """Return the conversion."""
        if ascii_only:
            return str.lower
        changed = str.maketrans(dict(tables.lower))
        cased, passed = (re.compile(f"[{each}]").match for each in (tables.cased, tables.passed))

        def meets(text: str, places: range) -> bool:
            """Tell whether the next character that is not ignorable is a cased letter."""
            for place in places:
                if cased(text[place]):
                    return True
                if not passed(text[place]):
                    return False
            return False

        def lower(text: str) -> str:
            if _SIGMA in text:
                small = list(text)
                for place in (place for place, each in enumerate(text) if each == _SIGMA):
                    behind, ahead = range(place - 1, -1, -1), range(place + 1, len(text))
                    final = meets(text, behind) and not meets(text, ahead)
                    small[place] = _FINAL_SIGMA if final else _SMALL_SIGMA
                text = "".join(small)
            return text.translate(changed)

        return lower

    def graph(self, texts: Any) -> Any:
        """Convert the texts (B,)."""
        import tensorflow as tf

        return tf.strings.lower(texts, encoding="utf-8")


@dataclass(frozen=True)
class FindTokens(TextStep, kind="find"):
    """Finds the tokens of a text.

    Attributes:
        pattern: Pattern of a token, without groups; none has a blank.
    """

    pattern: str

    def python(self, tables: UnicodeTables, ascii_only: bool) -> Callable[[str], list[str]]:
        """Return the search for tokens."""
        pattern = tables.compile(self.pattern, ascii_only)
        return pattern.findall if pattern else lambda _: []

    def graph(self, texts: Any) -> Any:
        """Return the tokens (B, None) of texts (B,)."""
        import tensorflow as tf

        # The whole match is used: a group would take six times as long.
        return tf.strings.split(tf.strings.regex_replace(texts, self.pattern, r"\0 "))


@dataclass(frozen=True)
class SplitCharacters(TextStep, kind="characters"):
    """Splits a text into its characters."""

    def python(self, tables: UnicodeTables, ascii_only: bool) -> Callable[[str], list[str]]:  # noqa: ARG002
        """Return the split."""
        return list

    def graph(self, texts: Any) -> Any:
        """Return the characters (B, None) of texts (B,)."""
        import tensorflow as tf

        return tf.strings.unicode_split(texts, "UTF-8")


@dataclass(frozen=True)
class Spacing:
    """Marks whether a token follows a blank.

    Attributes:
        begin: Mark of the beginning of a run without blanks, while tokens are looked for.
        attached: Mark before tokens that stand behind no blank, in its place.
    """

    begin: str
    attached: str

    def python(self, tokens: Sequence[str]) -> list[str]:
        """Return the tokens with this mark in place of the other one."""
        return [
            self.attached + token
            if token[:1] != self.begin
            else token[1:]
            if len(token) > 1
            else token
            for token in tokens
        ]

    def graph(self, tokens: Any) -> Any:
        """Replace the marks of tokens (B, None)."""
        import tensorflow as tf

        def replaced(flat: Any) -> Any:
            inner = rf"{self.attached}\1"
            flat = tf.strings.regex_replace(flat, f"^([^{self.begin}].*)", inner)
            return tf.strings.regex_replace(flat, f"^{self.begin}(.)", r"\1")

        return tokens.with_flat_values(replaced(tokens.flat_values))


class Tokenizer(DataFile):
    """Splits texts into tokens; bytes that are not UTF-8 become U+FFFD.

    Args:
        steps: Changes of a text; the last one finds the tokens.
        spacing: Way in which tokens tell whether they stand behind a blank; None: they do not.
        tables: Characters as TensorFlow takes them, or a function that makes these; only the
            runtime without TensorFlow needs them.
    """

    file = "tokens.json"
    _format: ClassVar[int] = 2

    def __init__(
        self,
        steps: Sequence[TextStep],
        spacing: Spacing | None = None,
        tables: UnicodeTables | Callable[[], UnicodeTables] = UnicodeTables,
    ) -> None:
        self.steps, self.spacing, self._tables = tuple(steps), spacing, tables

    def __call__(self, text: bytes) -> list[str]:
        """Return the tokens of a text."""
        # The replacement of an ASCII entity may not be ASCII.
        if text.isascii() and not (self._exchanges and _ENTITY in text):
            found: Any = text.decode("ascii")
            changes = self._ascii
        else:
            found = text.decode("utf-8", "replace")
            changes = self._any
        for change in changes:
            found = change(found)
        return found if self.spacing is None else self.spacing.python(found)

    def graph(self, texts: Any) -> Any:
        """Return the tokens (B, None) of texts (B,) by TensorFlow operations."""
        return self._traced(texts)

    def shown(self, token: str) -> str:
        """Return a token as it appears in its text."""
        return token if self.spacing is None else token.removeprefix(self.spacing.attached) or token

    def shown_in_graph(self, tokens: Any) -> Any:
        """Return tokens (B, None) as they appear in their texts, by TensorFlow operations."""
        import tensorflow as tf

        if self.spacing is None:
            return tokens
        mark = f"^{self.spacing.attached}(.)"
        return tokens.with_flat_values(tf.strings.regex_replace(tokens.flat_values, mark, r"\1"))

    def text(self) -> str:
        """Return the content of `tokens.json`."""
        tables = self.tables
        spacing = self.spacing
        content = {
            "format": self._format,
            "steps": [step.to_json() for step in self.steps],
            "spacing": None if spacing is None else vars(spacing),
            "classes": dict(tables.classes),
            "lower": dict(tables.lower),
            "cased": tables.cased,
            "passed": tables.passed,
        }
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def parse(cls, text: str) -> Tokenizer:
        """Parse what `text` returned.

        Raises:
            InvalidArgument: The content is of another format, or has a step unknown here.
        """
        content = json.loads(text)
        if content["format"] != cls._format:
            raise InvalidArgument(
                f"{cls.file}: expected format {cls._format}, got {content['format']!r}"
            )
        names = ("classes", "lower", "cased", "passed")
        steps = [TextStep.from_json(step, _NO_FILES) for step in content["steps"]]
        spacing = content["spacing"]
        tables = UnicodeTables(*(content[name] for name in names))
        return cls(steps, None if spacing is None else Spacing(**spacing), tables)

    @cached_property
    def tables(self) -> UnicodeTables:
        """The Unicode tables as TensorFlow treats them."""
        return self._tables if isinstance(self._tables, UnicodeTables) else self._tables()

    @cached_property
    def _any(self) -> list[Callable[[Any], Any]]:
        return self._changes(ascii_only=False)

    @cached_property
    def _ascii(self) -> list[Callable[[Any], Any]]:
        return self._changes(ascii_only=True)

    def _changes(self, ascii_only: bool) -> list[Callable[[Any], Any]]:
        made = [step.python(self.tables, ascii_only) for step in self.steps]
        return [change for change in made if change is not None]

    @cached_property
    def _exchanges(self) -> bool:
        return any(isinstance(step, Exchange) for step in self.steps)

    @cached_property
    def _traced(self) -> Any:
        """The split as one TensorFlow function: cleaning takes a hundred operations."""
        import tensorflow as tf

        def split(texts: Any) -> Any:
            texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
            for step in self.steps:
                texts = step.graph(texts)
            return texts if self.spacing is None else self.spacing.graph(texts)

        signature = [tf.TensorSpec((None,), tf.string)]
        return tf.function(split, input_signature=signature, autograph=False)


_NO_FILES = Files(Path())


class Words(DataFile):
    """The known words with their ids.

    Args:
        tokens: Words, whose places are their ids; the first two stand for padding and unknown ones.
    """

    file = "words.txt"

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(tokens)

    def look_up(self, rows: Sequence[Sequence[str]], backoff: bool = False) -> np.ndarray:
        """Return word ids.

        With back-off an unknown word is read as a known one: as the same word with or without
        `ATTACHED`, else as the first one with the longest common beginning.

        Args:
            rows: B rows of tokens.
            backoff: Whether unknown words are read as known ones.

        Returns:
            (B, T) int32, padded with 0 at the end; T is at least 1.
        """
        ids = np.full((len(rows), max(map(len, rows), default=0) or 1), PADDING, np.int32)
        known = self._ids.get
        for row, tokens in zip(ids, rows, strict=True):
            row[: len(tokens)] = [known(token, UNKNOWN) for token in tokens]
            if backoff:
                for place in np.flatnonzero(row[: len(tokens)] == UNKNOWN):
                    row[place] = self._alike(tokens[int(place)])
        return ids

    def _alike(self, token: str) -> int:
        """Return the id of a known word that begins as an unknown one does."""
        word = token.removeprefix(ATTACHED) or token
        for ending in range(_MOST_ENDING + 1):
            left = len(word) - ending
            if ending and (left < _LEAST_BEGINNING or 10 * ending > 3 * len(word)):
                break
            found = self._beginnings.get(word[:left])
            if found is not None:
                return found
        return UNKNOWN

    def graph(self, tokens: Any, backoff: bool = False) -> Any:
        """Return the same of tokens (B, None) as (B, None) int32, by operations of TensorFlow."""
        import tensorflow as tf

        flat = tokens.flat_values
        ids = self.table.lookup(flat)
        if backoff:
            places = tf.where(tf.equal(ids, UNKNOWN))  # (U, 1)
            alike = self._alike_in_graph(tf.gather_nd(flat, places))
            ids = tf.tensor_scatter_nd_update(ids, places, alike)
        return tokens.with_flat_values(tf.cast(ids, tf.int32))

    def _alike_in_graph(self, tokens: Any) -> Any:
        """Return ids (U,) int64 of known words that begin as unknown ones (U,) do."""
        import tensorflow as tf

        words = tf.strings.regex_replace(tokens, f"^{ATTACHED}(.)", r"\1")
        length = tf.strings.length(words, unit="UTF8_CHAR")
        ids = tf.fill(tf.shape(words), tf.constant(UNKNOWN, tf.int64))
        for ending in reversed(range(_MOST_ENDING + 1)):
            left = tf.maximum(length - ending, 0)
            beginning = tf.strings.substr(words, tf.zeros_like(left), left, unit="UTF8_CHAR")
            found = self.beginnings_table.lookup(beginning)
            if ending:
                may_be = (left >= _LEAST_BEGINNING) & (10 * ending <= 3 * length)
                found = tf.where(may_be, found, UNKNOWN)
            ids = tf.where(tf.equal(found, UNKNOWN), ids, found)
        return ids

    @cached_property
    def table(self) -> Any:
        """The TensorFlow table; a module that uses it must hold it in order to be saved."""
        return _table(self.tokens[len(RESERVED) :], range(len(RESERVED), len(self.tokens)))

    @cached_property
    def beginnings_table(self) -> Any:
        """Table of TensorFlow for the back-off, to be held like `table`."""
        return _table([*self._beginnings], [*self._beginnings.values()])

    def text(self) -> str:
        """Return one word per line."""
        return "".join(f"{token}\n" for token in self.tokens)

    @classmethod
    def parse(cls, text: str) -> Words:
        """Parse what `text` returned."""
        return cls(text.removesuffix("\n").split("\n"))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: place for place, token in enumerate(self.tokens) if place > UNKNOWN}

    @cached_property
    def _beginnings(self) -> dict[str, int]:
        """The first word that begins so, by beginning; whole words stand for themselves."""
        found, whole = dict[str, int](), dict[str, int]()
        for token, place in self._ids.items():
            word = token.removeprefix(ATTACHED) or token
            whole.setdefault(word, place)
            for length in range(_LEAST_BEGINNING, min(len(word), _LONGEST_BEGINNING + 1)):
                found.setdefault(word[:length], place)
        return found | whole


def _table(keys: Sequence[str], values: Sequence[int]) -> Any:
    """Make a table from texts to ids, unknown ones to `UNKNOWN`."""
    import tensorflow as tf

    with tf.init_scope():  # it must outlive the graph in which it may be made
        ids = tf.constant(list(values), tf.int64)
        initial = tf.lookup.KeyValueTensorInitializer(tf.constant(list(keys), tf.string), ids)
        return tf.lookup.StaticHashTable(initial, default_value=UNKNOWN)


def padded_in_graph(tokens: Any, by: Any) -> Any:
    """Pad ragged values (B, None) to (B, T), T at least 1, by TensorFlow operations."""
    import tensorflow as tf

    table = tokens.to_tensor(by)
    return tf.pad(table, [[0, 0], [0, tf.maximum(0, 1 - tf.shape(table)[1])]], constant_values=by)


@dataclass(frozen=True)
class Tokenize(Step, kind="tokenize"):
    """Converts texts to tokens.

    Attributes:
        source: Texts (B,).
        target: Tokens of each, (B, None).
        tokenizer: Split of the texts.
        last: Number of tokens that are kept, the last ones; None for all.
    """

    source: str
    target: str
    tokenizer: Tokenizer
    last: int | None

    def numpy(self, values: Values) -> None:
        """Split texts."""
        rows = [self.tokenizer(text) for text in vector(values[self.source]).tolist()]
        values[self.target] = [row[-self.last :] for row in rows] if self.last else rows

    def graph(self, values: Values) -> None:
        """Split texts."""
        tokens = self.tokenizer.graph(values[self.source])
        values[self.target] = tokens[:, -self.last :] if self.last else tokens


@dataclass(frozen=True)
class LookUp(Step, kind="look_up"):
    """Converts tokens to word ids.

    Attributes:
        source: Tokens (B, None).
        target: Ids (B, T) int32, padded with 0 at the end, T at least 1.
        words: Known words.
        backoff: Whether unknown words are read as known ones that begin alike.
    """

    source: str
    target: str
    words: Words
    backoff: bool = False

    def numpy(self, values: Values) -> None:
        """Look up the tokens."""
        values[self.target] = self.words.look_up(values[self.source], self.backoff)

    def graph(self, values: Values) -> None:
        """Look up the tokens."""
        ids = self.words.graph(values[self.source], self.backoff)
        values[self.target] = padded_in_graph(ids, PADDING)

    def resources(self) -> Sequence[Any]:
        """Return the tables of the words."""
        more = [self.words.beginnings_table] if self.backoff else []
        return [self.words.table, *more]


@dataclass(frozen=True)
class ShowTokens(Step, kind="show_tokens"):
    """Shows tokens as they appear in their texts.

    Attributes:
        source: Tokens (B, None).
        target: Texts (B, T), padded with empty ones at the end, T at least 1.
        tokenizer: Split of the texts.
    """

    source: str
    target: str
    tokenizer: Tokenizer

    def numpy(self, values: Values) -> None:
        """Remove the marks, and pad."""
        rows, shown = values[self.source], self.tokenizer.shown
        table = np.full((len(rows), max(map(len, rows), default=0) or 1), b"", object)
        for row, tokens in zip(table, rows, strict=True):
            row[: len(tokens)] = [shown(token).encode() for token in tokens]
        values[self.target] = table

    def graph(self, values: Values) -> None:
        """Remove the marks, and pad."""
        shown = self.tokenizer.shown_in_graph(values[self.source])
        values[self.target] = padded_in_graph(shown, "")


def vector(array: np.ndarray) -> np.ndarray:
    """Return an array with one axis.

    Raises:
        InvalidArgument: The array has another number of axes; the message is TensorFlow's.
    """
    if array.ndim != 1:
        raise InvalidArgument(f"input must be a vector, got shape: {shape_text(array)}")
    return array


def shape_text(array: np.ndarray) -> str:
    """Write a shape as in `[2,3]`."""
    return f"[{','.join(map(str, array.shape))}]"
