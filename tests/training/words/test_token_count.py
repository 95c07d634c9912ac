"""Tokens counted without TensorFlow are as many as the model reads."""

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from gru_training.words.token_count import token_count
from gru_training.words.tokens import tokenizer

TEXTS = [
    "Don't stop! It's NOT bad...",
    "isn’t we'll they've I'd I'm you're",
    "one<br />two<BR/>three<br>four",
    "<p>Dear <b>Sir</b>,</p><!-- no --><style>p { color: red }</style> a < b & c > d",
    "see https://www.example.org/a/b?c=d#e and www.test.de, or not",
    "ÄÖ Éclair ΣΊΓΜΑ",
    "a\u00a0b\u2028c\u0085d\te\nf",
    "(5.5/10)?! snake_case 100€ 😀😀 👍🏽",
    "很好 GRU模型 カタカナ ひらがな 한국어",
    "cafe\u0301 हिन्दी สวัสดี ｆｕｌｌ ﬁne",
    "fish &amp; chips &nbsp; &quot;good&quot; &eacute;t&eacute;",
    "",
    " \n ",
    "<br>",
    "\u200b \u200b",
    "\u00ad\u200f",
    "<p></p>&nbsp;",
    "---",
]


def model_counts(texts, reading, cleaned):
    return tokenizer(cleaned, reading).graph(tf.constant(texts)).row_lengths().numpy().tolist()


@pytest.mark.parametrize("cleaned", [True, False])
@pytest.mark.parametrize("reading", ["words", "spaced"])
def test_as_many_tokens_as_the_model_reads(reading, cleaned):
    counts = [token_count(text, cleaned) for text in TEXTS]
    assert counts == model_counts(TEXTS, reading, cleaned)


PIECES = [
    "don't", "can’t", "it's", "'d", "...", "..", "<br/>", "<b>", "</b>", "&amp;", "http://a.b/c",
    "www.x.de", "Größe", "naïve", "日本", "สวัส", "x_y", "3.14", "😀", "\u200b", "\u00a0", "\t", "-",
    "É", "e\u0301", "“quoted”", "ﬁ",
]  # fmt: skip


@given(
    st.lists(st.sampled_from([*PIECES, " ", " "]), max_size=20).map("".join),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_as_many_tokens_in_what_people_type(text, cleaned):
    assert [token_count(text, cleaned)] == model_counts([text], "words", cleaned)
