"""The conversion of texts for a network: its words, their vectors, and texts as word ids."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from gru_serving.preprocessing.texts import PADDING, RESERVED
from gru_training.errors import DataError
from gru_training.sentiment.config import PretrainingConfig, SentimentConfig
from gru_training.sentiment.corpora import read_unlabelled
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.rows import text_key
from gru_training.words.embedding import word_pieces
from gru_training.words.tokens import Reading
from gru_training.words.vectors import latent_semantic_vectors, read_vectors, word_vectors
from gru_training.words.vocabulary import (
    TextPreprocessor,
    TokenIndex,
    TokenRows,
    Vocabulary,
    build_vocabulary,
    index_tokens,
    token_ids,
)

DEVIATION = 0.3
"""Root mean square of a vector's numbers, similar to that of a GRU's inputs."""
_LEAST_COUNT = 5

Progress = Callable[[str], None]
"""Function that receives a line on the present work."""


class SentimentWords(NamedTuple):
    """A vocabulary, with vectors where there was pre-training."""

    vocabulary: Vocabulary
    vectors: np.ndarray | None
    """(V, D) float32, or None."""
    trained: int
    """First id of the words without a vector to train."""
    pieces: np.ndarray | None
    """Pieces of each word, (V, P) int32, of `gru_training.words.embedding.word_pieces`, or None."""


class PreparedTexts(NamedTuple):
    """The texts of a data set as read by a network."""

    words: SentimentWords
    preprocessor: TextPreprocessor
    """Conversion of texts to word ids, as in every export."""
    rows: Mapping[str, TokenRows]
    """Rows by part: train, validation, test."""
    soft: TokenRows | None = None
    """Rows whose targets are probabilities (M, C)."""


def prepare_texts(
    data: SentimentData,
    config: SentimentConfig,
    learn_words: Callable[[SentimentData, bool, Reading], SentimentWords],
    parts: Sequence[str] = ("train", "validation", "test"),
) -> PreparedTexts:
    """Learn the words of the training texts, and convert texts to ids of these.

    In data of one's own an unknown word is read as a known one that begins alike: few rows lack
    many forms of their words.

    Args:
        data: Rows of the training.
        config: Settings of the training.
        learn_words: Function from the data, whether texts are cleaned, and the kind of their
            tokens to the words that the network begins with.
        parts: Names of the parts to read.

    Raises:
        DataError: No word is left, or the texts to pre-train on cannot be used.
    """
    cleaned = data.own if config.data.cleaning is None else config.data.cleaning
    reading = text_reading(data, config)
    words = learn_words(data, cleaned, reading)
    preprocessor = TextPreprocessor(
        words.vocabulary, config.data.max_tokens, cleaned, reading, backoff=data.own
    )
    rows = {
        name: TokenRows(token_ids(preprocessor, part.texts), part.labels, part.weights)
        for name, part in data.parts().items()
        if name in parts
    }
    soft = None
    if data.soft is not None:
        soft = TokenRows(token_ids(preprocessor, data.soft.texts), data.soft.probabilities)
    return PreparedTexts(words, preprocessor, rows, soft)


def text_reading(data: SentimentData, config: SentimentConfig) -> Reading:
    """Choose the tokens of texts, by default spaced words for the user's own data.

    Models that read in one direction continue token by token, and pre-trained vectors are of words
    alone, so both read plain words.
    """
    spacing = config.data.spacing
    if spacing is None:
        spacing = data.own and config.model.bidirectional and not config.pretraining.wanted
    return "spaced" if spacing else "words"


def sentiment_words(
    data: SentimentData,
    config: SentimentConfig,
    folder: Path,
    progress: Progress = lambda _: None,
    cleaned: bool = False,
    reading: Reading = "words",
) -> SentimentWords:
    """Learn the words of the training texts, then pre-trained ones.

    Words of texts with probabilities follow those of labelled texts, as far as `--max-vocabulary`
    leaves room.

    Args:
        data: Rows of the training; held-out texts are kept out of the pre-training.
        config: Settings of the training.
        folder: Folder of the pre-trained vectors.
        progress: Function that is given a line on what is being done.
        cleaned: Whether texts are cleaned before they are read.
        reading: Kind of the tokens.

    Raises:
        DataError: No word is left, or the texts to pre-train on cannot be used.
    """
    texts, settings = data.train.texts, config.data
    index = index_tokens(texts, cleaned, reading)
    own = build_vocabulary(index, settings.max_vocabulary, settings.min_count)
    if data.soft is not None:
        further = index_tokens(data.soft.texts, cleaned, reading)
        room = settings.max_vocabulary + len(RESERVED) - len(own)
        own = own.extended(further, room, settings.min_count)
    vocabulary, vectors = own, None
    pretraining = config.pretraining
    if pretraining.word_vectors or pretraining.unlabelled is not None:
        held_out = [*data.validation.texts, *data.test.texts]
        learned = pretrained_words(pretraining, texts, held_out, folder, progress, index, cleaned)
        vocabulary, vectors = _with_pretrained(own, learned, config.training.seed)
    elif pretraining.vectors is not None:
        progress("reading the vectors")
        wanted = own.tokens[len(RESERVED) :]
        found = read_vectors(pretraining.vectors, wanted, pretraining.vector_words)
        scale = DEVIATION / float(np.sqrt(np.mean(found.vectors.astype(np.float64) ** 2)))
        learned = PretrainedWords(found.tokens, found.vectors * np.float32(scale), 0)
        vocabulary, vectors = _with_pretrained(own, learned, config.training.seed)
    pieces = word_pieces(vocabulary.tokens) if config.model.subwords else None
    return SentimentWords(vocabulary, vectors, len(own), pieces)


class PretrainedWords(NamedTuple):
    """Words with a vector each."""

    tokens: tuple[str, ...]
    """The N most frequent words of the texts."""
    vectors: np.ndarray
    """(N, D) float32."""
    texts: int
    """Number of texts from which the vectors were learned."""


def pretrained_words(
    config: PretrainingConfig,
    training: Sequence[str],
    held_out: Sequence[str],
    folder: Path,
    progress: Progress = lambda _: None,
    index: TokenIndex | None = None,
    cleaned: bool = False,
) -> PretrainedWords:
    """Learn the vectors, or load those learned earlier from the same texts.

    Args:
        config: Settings with `unlabelled`, `word_vectors` or both.
        training: Texts to learn from if `word_vectors` is set.
        held_out: Validation and test texts; an unlabelled text that is also among them, or among
            the training texts that are learned from, is passed over.
        folder: Folder where vectors are kept for the next training, as
            `.word-vectors-<digest>.npz`.
        progress: Function that is given a line on what is being done.
        index: Tokens of the training texts, if they are known already.
        cleaned: Whether texts are cleaned before they are read.

    Raises:
        DataError: The texts cannot be read, or hold too few different words.
    """
    own = training if config.word_vectors else ()
    texts = list(own)
    if config.unlabelled is not None:
        progress("reading the unlabelled texts")
        others = read_unlabelled(config.unlabelled)
        excluded = {text_key(text) for text in (*held_out, *own)}
        texts += [text for text in others if text_key(text) not in excluded]
    sizes = config.vector_size, config.topic_size, config.vector_words, config.window
    digest = sha256(f"{sizes}{' cleaned' if cleaned else ''}\n".encode())
    for text in texts:
        digest.update(text.encode() + b"\n")
    path = folder / f".word-vectors-{digest.hexdigest()[:16]}.npz"
    kept = _read(path)
    if kept is not None:
        return PretrainedWords(*kept, len(texts))

    if index is None or config.unlabelled is not None:
        progress("tokenizing the texts")
        index = index_tokens(texts, cleaned)
    count = min(config.vector_words, int((index.counts >= _LEAST_COUNT).sum()))
    least = max(config.vector_size, config.topic_size)
    if min(count, len(texts)) <= least:
        raise DataError(
            f"{config.unlabelled or '--word-vectors'}: expected more than {least} texts "
            f"(--vector-size, --topic-size) and as many different words that occur {_LEAST_COUNT} "
            f"times or more, got {len(texts)} texts with {count} such words"
        )
    first, unknown = len(RESERVED), len(RESERVED) - 1
    rows = [np.where(row < count, row + first, unknown) for row in index.rows]
    parts = [word_vectors(rows, count + first, config.vector_size, config.window, progress)]
    if config.topic_size:
        progress("factorising the texts")
        parts.append(latent_semantic_vectors(rows, count + first, config.topic_size))
    vectors = np.concatenate(parts, axis=1)[first:] * np.float32(DEVIATION)
    words = PretrainedWords(tuple(index.tokens[:count]), vectors, len(texts))
    _write(path, words)
    return words


def _read(path: Path) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Read what `_write` wrote; None if it is damaged, so that it is made again."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as values:
            return tuple(values["tokens"].tolist()), values["vectors"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def _write(path: Path, words: PretrainedWords) -> None:
    """Store the vectors; a failure does not end the training."""
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
            temporary = file.name
            np.savez(file, tokens=np.array(words.tokens), vectors=words.vectors)
        Path(temporary).replace(path)
    except OSError:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _with_pretrained(
    own: Vocabulary, learned: PretrainedWords, seed: int
) -> tuple[Vocabulary, np.ndarray]:
    """Append further words to the known ones, and return a vector for each.

    Drawn for words without one.
    """
    known = set(own.tokens)
    further = [token for token in learned.tokens if token not in known]
    vocabulary = Vocabulary([*own.tokens[len(RESERVED) :], *further])
    rng = np.random.default_rng(seed)
    deviation = 0.5 * learned.vectors.std()
    vectors = rng.normal(0, deviation, (len(vocabulary), learned.vectors.shape[1]))
    vectors[PADDING] = 0
    place = {token: row for row, token in enumerate(learned.tokens)}
    for row, token in enumerate(vocabulary.tokens):
        if token in place:
            vectors[row] = learned.vectors[place[token]]
    return vocabulary, vectors.astype(np.float32)
