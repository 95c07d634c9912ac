"""How texts are split into tokens."""

import pytest
import tensorflow as tf

from gru_training.words.tokens import tokenizer
from gru_training.words.vocabulary import TextPreprocessor, Vocabulary


def tokenize(texts):
    return tokenizer().graph(texts)


def spaced_words(texts):
    return tokenizer(reading="spaced").graph(texts)


def split(how, *texts):
    return [[token.decode() for token in row] for row in how(tf.constant(texts)).to_list()]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't stop! It's NOT bad...", "do n't stop ! it 's not bad ..."),
        ("isn’t we'll they've I'd I'm you're", "is n't we 'll they 've i 'd i 'm you 're"),
        ("it 's n't pre-tokenised , is n't it", "it 's n't pre - tokenised , is n't it"),
        ("say 'hello' to rock'n'roll", "say ' hello ' to rock ' n ' roll"),
        ("one<br />two<BR/>three<br>four", "one two three four"),
        ("ÄÖ Éclair ΣΊΓΜΑ", "äö éclair σίγμα"),
        ("a\u00a0b\u2028c\u0085d\x00e\tf\ng", "a b c d e f g"),
        ("(5.5/10)?!", "( 5 . 5 / 10 ) ? !"),
        ("很好 GRU模型 カタ", "很 好 gru 模 型 カ タ"),
        ("cafe\u0301 हिन्दी", "cafe\u0301 हिन्दी"),
        ("😀😀 100€", "😀 😀 100 €"),
        (b"good \xff\xfe bad", "good � � bad"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_tokens(text, tokens):
    found = [token.decode() for token in tokenize(tf.constant([text])).to_list()[0]]
    assert found == tokens.split()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Good end. Bad end .", "good end ##. bad end ."),
        ("Don't stop (now)!", "do ##n't stop ( ##now ##) ##!"),
        ("it\u2019s  3.5", "it ##'s 3 ##. ##5"),
        ("a<br/>b", "a b"),
        ("很好, OK", "很 好 , ok"),
        ("#tag ## ▁", "# ##tag # ### ▁"),
        ("a\u2581b c\u2581", "a b c ▁"),
        ("", ""),
        (" ", ""),
    ],
)
def test_spaced_tokens_say_what_stood_behind_no_blank(text, tokens):
    assert split(spaced_words, text) == [tokens.split()]


def test_spaced_tokens_are_those_of_tokenize_but_for_the_marks():
    texts = ["I can't wait; it's 'great'...", "(5.5/10)?!", "rock'n'roll well-made", "İstanbul ΣΑΣ"]
    for text in texts:
        found = [token.removeprefix("##") for token in split(spaced_words, text)[0]]
        assert found == split(tokenize, text)[0]


def test_spaced_words_have_ids():
    ids = TextPreprocessor(Vocabulary(["good", "##!"]), 9, reading="spaced")(
        tf.constant(["good!", "", "good !"])
    )
    assert ids.numpy().tolist() == [[2, 3], [0, 0], [2, 1]]


def test_tokens_are_shown_without_marks():
    preprocessor = TextPreprocessor(Vocabulary(["good"]), 3, reading="spaced")
    rows = preprocessor.tokens(tf.constant(["so good! #1", ""])).to_list()
    assert [[token.decode() for token in row] for row in rows] == [["!", "#", "1"], []]
