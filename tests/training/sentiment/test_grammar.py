import re
from collections import Counter, defaultdict

import numpy as np
import pytest

from gru_training.sentiment.config import SentimentDataConfig
from gru_training.sentiment.grammar import generate_reviews
from tests.training.sentiment.reading import load_sentiment_data


def bag(text: str) -> tuple[str, ...]:
    return tuple(sorted(re.findall(r"\w+|[^\w\s]", text.lower())))


def test_most_reviews_have_a_twin_of_the_same_words_and_the_other_label():
    reviews = generate_reviews(2000, seed=3)
    groups = defaultdict(list)
    for review in reviews:
        groups[review.group].append(review)
    twins = 0
    for group in groups.values():
        one, other = group
        assert {one.label, other.label} == {0, 1}
        assert one.text != other.text
        twins += bag(one.text) == bag(other.text)
    assert 0.7 < twins / len(groups) < 0.8


def test_no_text_occurs_twice_and_classes_are_balanced():
    reviews = generate_reviews(3000, seed=0)
    assert len({review.text for review in reviews}) == 3000
    assert Counter(review.label for review in reviews) == {0: 1500, 1: 1500}


def test_the_seed_decides():
    assert generate_reviews(200, 7) == generate_reviews(200, 7)
    assert generate_reviews(200, 7) != generate_reviews(200, 8)


@pytest.mark.parametrize("count", [1, 2, 101])
def test_exactly_as_many_as_asked(count):
    assert len(generate_reviews(count, 0)) == count


# Verdicts written down by hand, not by the grammar.
VERDICTS = [
    (r"^(honestly, |to be fair, )?the [\w ]+ (is|was) (?P<word>\w+)[.!]?$", False),
    (r"^(honestly, |to be fair, )?the [\w ]+ (is|was) not (?P<word>\w+)[.!]?$", True),
    (r"but the [\w ]+ is (?P<word>\w+)\.", False),
    (r"but the [\w ]+ is not (?P<word>\w+)\.", True),
    (r"^far from being \w+, this \w+ is (?P<word>\w+)", False),
    (r"more (?P<word>\w+) than", False),
    (r"^((what )?an? )?(?P<word>\w+) (film|movie|drama|plot|acting|story)[.!]?$", False),
    (r"(^|, )not an? (?P<word>\w+) \w+\b", True),
]
GOOD = {"superb", "moving", "clever", "gripping", "good", "brilliant", "great", "funny"}
BAD = {"dull", "boring", "clumsy", "bad", "weak", "terrible", "slow", "silly"}


@pytest.mark.parametrize(("pattern", "turned"), VERDICTS)
def test_labels_agree_with_the_meaning(pattern, turned):
    checked = 0
    for review in generate_reviews(6000, seed=1):
        match = re.search(pattern, review.text.lower())
        if match and match["word"] in GOOD | BAD:
            assert review.label == int((match["word"] in GOOD) != turned), review.text
            checked += 1
    assert checked >= 5


def test_some_reviews_are_what_a_visitor_types_first():
    """A few words without a capital and a full stop."""
    texts = [review.text for review in generate_reviews(6000, seed=42)]
    assert any(re.fullmatch(r"(a )?[a-z]+ (film|movie|drama|remake)", text) for text in texts)
    assert sum(text[0].islower() for text in texts) > 300


def test_parts_share_no_text_and_no_bag_of_words():
    data = load_sentiment_data(SentimentDataConfig(reviews=2000), seed=5)
    parts = list(data.parts().values())
    assert sum(len(part) for part in parts) == 2000
    for i, one in enumerate(parts):
        for other in parts[i + 1 :]:
            assert not set(one.texts) & set(other.texts)
    # Twins stay together, or a bag-of-words model could find the answer by elimination.
    in_test = Counter(map(bag, data.test.texts))
    paired = sum(count for count in in_test.values() if count > 1)
    assert paired / len(data.test) > 0.6
    assert abs(len(data.test) - 200) <= 2
    assert np.bincount(data.test.labels).tolist() == [len(data.test) // 2] * 2
