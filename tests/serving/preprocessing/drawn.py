"""Texts in which what the runtimes may take differently is frequent; some are no UTF-8."""

from hypothesis import strategies as st

PIECES = (
    "n't", "'s", "'LL", "’re", "don't", "<br>", "<BR />", "<br\t\n/>", "...", "Σ", "ΑΣ", "İ",
    " ", "\u00a0", "\u3000", "\u0345", "漢", "カ", "\ufeff", "e\u0301", "_", "3.14", "n'té",
    "<!--", "-->", "<script", "</Script\n>", "<\u017ftyle ", "<b class='x'>", "</P>", "<", ">",
    "&amp;", "&nbsp;", "&#xA0;", "&euro;", "&AUML;", "&auml", "&lt", ";", "http://", "WWW.",
    "www.example.org", "/a?b=ü", "\v", "#", "ﬁ", "Ａ", "½", "o\u031b\u0300", "\u0303", "한", "ᄒ",
    "ᅡ", "ราคา", "\u200b", "\u200d", "👍🏽", "\u00ad", "=\U000c91c0", "good", "Good.", "\r\n", "\0",
)  # fmt: skip
"""What the two may take differently."""

pieces = st.one_of(st.sampled_from(PIECES), st.text(max_size=3), st.characters())
valid = st.lists(pieces, max_size=25).map("".join).map(lambda text: text.encode("utf-8", "ignore"))
lossy = st.builds(
    lambda text, place, byte: text[:place] + bytes([byte]) + text[place + 1 :],
    valid, st.integers(0, 40), st.integers(0, 255),
)  # fmt: skip
texts = st.one_of(valid, lossy)
