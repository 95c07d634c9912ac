"""Texts, step by step and as a whole: without TensorFlow as by its operations."""

import time
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gru_serving.errors import InvalidArgument
from gru_serving.preprocessing.texts import (
    Cut,
    Exchange,
    LookUp,
    Replace,
    ShowTokens,
    TextStep,
    Tokenize,
    Tokenizer,
    Words,
)
from gru_training.words.tokens import tokenizer, unicode_tables
from tests.serving.preprocessing.drawn import texts

WORDS = Words(["[PAD]", "[UNK]", "good", "n't", ".", "##.", "漢", "é", "σας"])
KINDS = {
    "plain": (False, "words"),
    "cleaned": (True, "words"),
    "spaced": (True, "spaced"),
    "characters": (True, "characters"),
}
rows = st.lists(texts, min_size=1, max_size=40)
many = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@pytest.fixture(scope="module", params=KINDS)
def split(request):
    """A tokenizer as a server reads it, and the one that wrote it."""
    written = tokenizer(*KINDS[request.param])
    return Tokenizer.parse(written.text()), written


def both(steps, values):
    """The values after the steps in either runtime, TensorFlow's as arrays."""
    found, graph = dict(values), {n: tf.constant(v, tf.string) for n, v in values.items()}
    for step in steps:
        step.numpy(found)
        step.graph(graph)
    return found, graph


def same_tokens(split, data):
    read, written = split
    wanted = written.graph(tf.constant(data, tf.string)).to_list()
    for text, expected in zip(data, wanted, strict=True):
        assert [token.encode() for token in read(text)] == expected, text


@many
@given(data=rows)
def test_tokens(split, data):
    same_tokens(split, data)


@many
@given(data=rows)
def test_ids_and_tokens_as_they_stand_in_texts(split, data):
    read, _ = split
    steps = [Tokenize("text", "pieces", read, 7), LookUp("pieces", "ids", WORDS, True)]
    array = np.array([*data, b""], object)
    found, graph = both([*steps, ShowTokens("pieces", "tokens", read)], {"text": array})
    np.testing.assert_array_equal(found["ids"], graph["ids"].numpy())
    np.testing.assert_array_equal(found["tokens"], graph["tokens"].numpy())
    assert found["ids"].dtype == np.int32


@many
@given(data=rows)
def test_every_change_alone(data):
    """Of valid UTF-8, as the step before all others makes it; the last steps find tokens."""
    tables = unicode_tables()
    valid = [text.decode("utf-8", "replace").replace("\0", "") for text in data]
    steps = {step for kind in KINDS.values() for step in tokenizer(*kind).steps}
    for step in steps:
        wanted = step.graph(tf.constant(valid, tf.string))
        change = step.python(tables, ascii_only=False)
        for text, expected in zip(valid, wanted.numpy().tolist(), strict=True):
            found = change(text)
            if isinstance(found, str):
                assert found.encode() == expected, (step, text)
        for text in filter(str.isascii, valid):
            short = step.python(tables, ascii_only=True)
            if not isinstance(step, Exchange):  # such texts are read as any other
                assert (short(text) if short else text) == change(text), (step, text)


@pytest.mark.long
def test_every_character_is_read_as_by_tensorflow(split):
    """Alone between letters, so that what it does to them shows; all of Unicode, in rows of 64."""
    points = [point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    data = [
        "".join(f"A{chr(point)}Σ b" for point in points[start : start + 64]).encode()
        for start in range(0, len(points), 64)
    ]
    same_tokens(split, data)


def test_texts_as_people_have_them(split):
    data = (
        "<p class='x'>3 &lt; 5 &amp;&nbsp;caf&eacute;</p><script>if (a<b) {}</script><br/>Ende",
        "<!-- a --> b <!-- c <STYLE>d</style > e --> f <script>g <!-- </script> h -->",
        "&amp;lt; &amp;amp;amp; &#39;s &auml", "a&Auml;ΟΔΟΣ&nbsp;b", "don&rsquo;t",
        "see HTTPS://shop.example.com/a/b?c=d#e or www.example.org/x, thanks http:// http://ü.de/ß",
        "ﬁne ＦＵＬＬ ½ Ａ\u030a 가\u11a8 Tru\u031bo\u031b\u0300ng \u0344 \u0958",
        "\vhttp://a\vb c", "👩\u200d💻👍🏽 ❤\ufe0f soft\u00adware zero\u200bwidth ราคา",
    )  # fmt: skip
    same_tokens(split, [text.encode() for text in data])
    same_tokens(split, [b"", b"\x00", b"\xed\xa0\x80", b"a\x00Bn't", b"\xef\xbb\xbfA"])


def test_what_is_opened_and_never_closed_takes_one_pass(split):
    """As in RE2; the pattern `<!--.*?-->` would take Python minutes here."""
    started = time.perf_counter()
    split[0](b"<!--<script " * 50_000)
    assert time.perf_counter() - started < 5


def test_a_step_of_another_release_is_named():
    written = tokenizer().text().replace('"lower"', '"upper"', 1)
    with pytest.raises(InvalidArgument, match="unknown step 'upper'"):
        Tokenizer.parse(written)
    with pytest.raises(InvalidArgument, match=r"tokens\.json: expected format 2, got 1"):
        Tokenizer.parse(tokenizer().text().replace('"format": 2', '"format": 1'))


def test_steps_go_to_json_and_back():
    steps = [Cut((("<!--", "-->"),), " "), Replace("a", "b"), *tokenizer(True, "spaced").steps]
    assert [TextStep.from_json(step.to_json(), None) for step in steps] == steps


FORMS = Words(
    ["[PAD]", "[UNK]", "testing", "great", "##is", "überraschung", "##tested", "a", "##", "tests"]
)
ALPHABET = st.text("tesing##über", max_size=12)


@many
@given(rows=st.lists(st.lists(ALPHABET, max_size=8), max_size=6))
def test_unknown_words_are_read_as_alike_ones_in_both(rows):
    tokens = tf.ragged.constant(rows, ragged_rank=1, dtype=tf.string)
    for backoff in (False, True):
        ids = FORMS.look_up(rows, backoff)
        expected = [row[: len(tokens)].tolist() for row, tokens in zip(ids, rows, strict=True)]
        assert FORMS.graph(tokens, backoff).to_list() == expected


@pytest.mark.parametrize(
    ("token", "word"),
    [
        ("testing", "testing"),
        ("##great", "great"),  # the same word elsewhere
        ("is", "##is"),
        ("test", "testing"),  # the first one that begins so
        ("tester", "##tested"),
        ("testbeds", "[UNK]"),  # half of it is another's
        ("überraschend", "überraschung"),
        ("teste", "##tested"),  # more letters in common than with the first
        ("##a", "a"),
        ("ab", "[UNK]"),  # too short to tell
        ("###", "[UNK]"),
        ("", "[UNK]"),
    ],
)
def test_an_unknown_word_is_read_as(token, word):
    ((found,),) = FORMS.look_up([[token]], backoff=True)
    assert FORMS.tokens[found] == word


def test_a_known_word_of_many_letters_takes_no_more_memory_than_its_own():
    letters = 10_000
    words = Words([*FORMS.tokens, "x" * letters])
    tracemalloc.start()
    try:
        ids = words.look_up([["x" * letters, "x" * 20, "x" * 40, "overtested"]], backoff=True)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ids.tolist() == [[10, 10, 1, 1]]
    assert most < 40 * letters
