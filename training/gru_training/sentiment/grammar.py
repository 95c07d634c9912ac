"""Film reviews from a small grammar in which word order decides.

Most reviews come as *twins*: the same words in another order with the opposite verdict ("The acting
is superb, but the ending is dull." and "The ending is dull, but the acting is superb."). A model
that reads only which words occur, and how often, must get one of the two wrong. The other reviews
teach the meanings of words, and that *not*, *never* and *far from* reverse a word.
"""

import numpy as np

from gru_training.sentiment.rows import Row

NEGATIVE, POSITIVE = 0, 1

_ADJECTIVES = (
    (
        "dull", "boring", "predictable", "clumsy", "tedious", "shallow", "bad", "forgettable",
        "messy", "lifeless", "silly", "weak", "painful", "hollow", "bland", "terrible", "awful",
        "poor", "slow", "disappointing",
    ),
    (
        "superb", "moving", "clever", "gripping", "charming", "brilliant", "good", "fresh",
        "touching", "thrilling", "witty", "strong", "memorable", "warm", "beautiful", "great",
        "excellent", "wonderful", "funny", "amazing",
    ),
)  # fmt: skip
_ADVERBS = (
    ("badly", "poorly", "slowly", "clumsily", "weakly", "terribly"),
    ("well", "brilliantly", "strongly", "beautifully", "wonderfully", "nicely"),
)
_VERBS = (
    ("hated", "disliked", "could not stand", "did not like"),
    ("loved", "enjoyed", "really liked", "liked"),
)
_WORDS = {"adjective": _ADJECTIVES, "adverb": _ADVERBS, "verb": _VERBS}
_ASPECTS = (
    "acting", "plot", "ending", "dialogue", "pacing", "script", "camera work", "first half",
    "second half", "lead actor", "supporting cast", "story", "score", "opening scene", "romance",
)  # fmt: skip
_WORKS = ("film", "movie", "drama", "comedy", "thriller", "sequel", "remake", "debut")

# {a} and {b} are filled with opposite polarities of one kind; the letter marks the one that decides
# the verdict.
_TWIN_TEMPLATES = (
    ("clause", "{a}, but {b}", "b"),
    ("clause", "{a} but {b}", "b"),
    ("clause", "{a}, yet {b}", "b"),
    ("clause", "although {a}, {b}", "b"),
    ("clause", "even if {a}, {b}", "b"),
    ("clause", "{a}, even though {b}", "a"),
    ("clause", "at first {a}, but then {b}", "b"),
    ("clause", "it is true that {a}; still, {b}", "b"),
    ("clause", "{a}, and it hardly matters that {b}", "a"),
    ("adjective", "the {work} is more {a} than {b}", "a"),
    ("adjective", "the {aspect} is {a}, not {b}", "a"),
    ("adjective", "far from being {a}, this {work} is {b}", "b"),
    ("adjective", "the {work} is anything but {a} and really quite {b}", "b"),
    ("adjective", "the critics call it {a}, but I found it {b}", "b"),
    ("adjective", "I expected something {a} and got something {b}", "b"),
    ("adjective", "what begins as {a} soon turns {b}", "b"),
    ("adjective", "not {a} at all, just {b}", "b"),
    ("adjective", "it wants to be {a}, yet it turns out {b}", "b"),
    ("adjective", "the trailer looked {a}, the {work} itself is {b}", "b"),
    ("adjective", "{a} at first, {b} in the end", "b"),
    ("adverb", "the {work} starts {a} but ends {b}", "b"),
    ("adverb", "starts {a} but ends {b}", "b"),
    ("adverb", "it is {a} written but {b} acted, and the acting is what counts", "b"),
    ("adverb", "the {work} ends {b} after it began {a}", "b"),
    ("verb", "my friends {a} the {work}, but I {b} it", "b"),
    ("verb", "I {a} the {work}, though my sister {b} it", "a"),
    ("verb", "I {a} the first hour and {b} what came after", "b"),
)

# One word {x}; the flag says whether the words around it reverse it.
_SINGLE_TEMPLATES = (
    ("adjective", "the {aspect} is {x}", False),
    ("adjective", "the {aspect} is truly {x}", False),
    ("adjective", "the {work} is {x} from start to finish", False),
    ("adjective", "I found the {aspect} {x}", False),
    ("adjective", "every scene is {x}", False),
    ("adjective", "truly {x}", False),
    ("adjective", "a {work} that is {x} and never less", False),
    ("adjective", "{x}", False),
    ("adjective", "{x} {work}", False),
    ("adjective", "{x} {aspect}", False),
    ("adjective", "a {x} {work}", False),
    ("adjective", "what a {x} {work}", False),
    ("adjective", "this is a {x} {work}", False),
    ("adjective", "it was {x}", False),
    ("adjective", "the {aspect} was {x}", False),
    ("adverb", "the {work} is {x} acted", False),
    ("adverb", "it all ends {x}", False),
    ("verb", "I {x} it", False),
    ("verb", "I {x} every minute of it", False),
    ("verb", "I {x} the {aspect}", False),
    ("verb", "we all {x} this {work}", False),
    ("adjective", "the {aspect} is not {x}", True),
    ("adjective", "the {work} is not {x} at all", True),
    ("adjective", "not {x} at all", True),
    ("adjective", "not {x}", True),
    ("adjective", "far from {x}", True),
    ("adjective", "never {x}", True),
    ("adjective", "the {aspect} is never {x}", True),
    ("adjective", "the {work} is far from {x}", True),
    ("adjective", "I would not call the {aspect} {x}", True),
    ("adjective", "nothing about the {aspect} is {x}", True),
    ("adjective", "the {work} is anything but {x}", True),
    ("adjective", "the {aspect} isn't {x}", True),
    ("adjective", "nobody could call this {work} {x}", True),
    ("adjective", "it is not true that the {aspect} is {x}", True),
    ("adjective", "not a {x} {work}", True),
    ("adjective", "it was not {x}", True),
    ("adjective", "the {aspect} was not {x}", True),
)

_OPENERS = (
    "", "", "", "", "honestly, ", "to be fair, ", "in my opinion, ", "for once, ", "all in all, ",
    "as a fan of the genre I must say: ", "after two hours I can say: ", "as so often, ",
)  # fmt: skip
_CLOSING_SENTENCES = (
    "", "", "", "", " I saw it with my sister.", " The cinema was half full.",
    " It runs two hours.", " The director made it in one summer.", " That is all there is to say.",
    " Now you know.", " I watched it on a rainy Sunday.", " We talked about it all the way home.",
)  # fmt: skip
_ENDS = (".", ".", "!", "")
"""Last characters of a review of one sentence; without any, it begins with a small letter, too."""


def generate_reviews(count: int, seed: int) -> list[Row]:
    """Generate reviews, no two with the same text.

    Three quarters are twins. The two reviews of a group, of both verdicts, must stay in one part of
    a split, and balance the classes; if `count` is odd, the last group is cut to one review.

    Args:
        count: Number of reviews, at least 1.
        seed: Seed of the reviews; the same seed gives the same reviews.
    """
    rng = np.random.default_rng(seed)
    reviews: list[Row] = []
    seen: set[str] = set()
    group = 0
    while len(reviews) < count:
        negative, positive = _twins(rng) if rng.random() < 0.75 else _opposites(rng)
        if negative in seen or positive in seen:
            continue
        seen.update((negative, positive))
        reviews.append(Row(negative, NEGATIVE, str(group)))
        reviews.append(Row(positive, POSITIVE, str(group)))
        group += 1
    return reviews[:count]


def _twins(rng: np.random.Generator) -> tuple[str, str]:
    """Make a negative and a positive review from the same words."""
    kind, template, decides = _TWIN_TEMPLATES[rng.integers(len(_TWIN_TEMPLATES))]
    work = _pick(rng, _WORKS)
    first, second = rng.choice(len(_ASPECTS), 2, replace=False)
    aspects = _ASPECTS[first], _ASPECTS[second]
    fillers = [_filler(rng, kind, polarity, aspects[polarity]) for polarity in (0, 1)]
    bad, good = fillers
    opener, closer = _pick(rng, _OPENERS), _closer(rng)
    texts = {}
    for a, b in ((bad, good), (good, bad)):
        verdict = (a if decides == "a" else b) == good
        body = template.format(a=a, b=b, work=work, aspect=aspects[0])
        texts[verdict] = _sentence(opener, body, closer)
    return texts[False], texts[True]


def _filler(rng: np.random.Generator, kind: str, polarity: int, aspect: str) -> str:
    if kind != "clause":
        return _pick(rng, _WORDS[kind][polarity])
    if rng.random() < 0.3:
        return f"the {aspect} is not {_pick(rng, _ADJECTIVES[1 - polarity])}"
    return f"the {aspect} is {_pick(rng, _ADJECTIVES[polarity])}"


def _opposites(rng: np.random.Generator) -> tuple[str, str]:
    """Make a negative and a positive review from one template, with words of both polarities."""
    kind, template, turned = _SINGLE_TEMPLATES[rng.integers(len(_SINGLE_TEMPLATES))]
    work, aspect = _pick(rng, _WORKS), _pick(rng, _ASPECTS)
    opener, closer = _pick(rng, _OPENERS), _closer(rng)
    texts = {}
    for polarity in (NEGATIVE, POSITIVE):
        word = _pick(rng, _WORDS[kind][polarity])
        body = template.format(x=word, work=work, aspect=aspect)
        texts[(polarity == POSITIVE) != turned] = _sentence(opener, body, closer)
    return texts[False], texts[True]


def _closer(rng: np.random.Generator) -> str:
    """Return what follows the sentence of the verdict: an end, or an end and another sentence."""
    following = _pick(rng, _CLOSING_SENTENCES)
    return f".{following}" if following else _pick(rng, _ENDS)


def _sentence(opener: str, body: str, closer: str) -> str:
    text = f"{opener}{body}{closer}"
    return text[0].upper() + text[1:] if closer else text


def _pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[rng.integers(len(choices))]
