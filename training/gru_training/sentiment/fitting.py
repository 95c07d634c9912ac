"""From labelled texts to a trained network, with nothing written."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console

from gru_training.loop.batches import LengthBucketedBatches
from gru_training.loop.checkpoint import Checkpoint
from gru_training.loop.fit import FitResult, Progress
from gru_training.loop.optimizers import SparseAdam
from gru_training.loop.train import train
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.initial_weights import InitialWeights
from gru_training.sentiment.network.combination import fit_shares
from gru_training.sentiment.network.logits import EVALUATION_BATCH
from gru_training.sentiment.network.model import build_sentiment_model, initialise_words
from gru_training.sentiment.targets.target import Target
from gru_training.sentiment.targets.weighted import WeightedTarget
from gru_training.sentiment.vocabulary.words import SentimentWords, sentiment_words, text_reading
from gru_training.words.count_ratios import word_ratios
from gru_training.words.ngram_model import require_keys
from gru_training.words.token_rows import TokenRows
from gru_training.words.vocabulary import TextPreprocessor, token_ids


class ReadTexts(NamedTuple):
    """The texts as a network reads them."""

    cleaned: bool
    """Whether texts are cleaned before they are split into words."""
    words: SentimentWords
    preprocessor: TextPreprocessor
    rows: Mapping[str, TokenRows]
    """The parts of the data as word ids."""


def read_texts(
    data: SentimentData,
    config: SentimentConfig,
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
    parts: Sequence[str] = ("train", "validation", "test"),
    initial: InitialWeights | None = None,
) -> ReadTexts:
    """Learn the words of the training texts, and read texts as ids of these.

    Args:
        data: The rows.
        config: Every setting.
        folder: Where pre-trained vectors are kept.
        progress: Told what is being done.
        parts: Those to read.
        initial: Words that the network begins with; by default those of the training texts.

    Raises:
        DataError: No word is left, or the texts to pre-train on cannot be used.
        ConfigError: There are too many words for n-grams of the length asked for.
    """
    cleaned = config.data.cleaning
    if cleaned is None:
        cleaned = data.own
    reading = text_reading(data, config)
    if initial is not None:
        words = initial.words(data.train.texts)
    else:
        words = sentiment_words(data, config, folder, progress, cleaned, reading)
    if with_ngrams(config, data) or config.run.ngram_baseline:
        # Fitted only after the network has been trained.
        require_keys(len(words.vocabulary), config.model.ngram_order)
    preprocessor = TextPreprocessor(words.vocabulary, config.data.max_tokens, cleaned, reading)
    rows = {
        name: TokenRows(token_ids(preprocessor, part.texts), part.labels, part.weights)
        for name, part in data.parts().items()
        if name in parts
    }
    return ReadTexts(cleaned, words, preprocessor, rows)


def fit_network(
    data: SentimentData,
    read: ReadTexts,
    target: Target,
    config: SentimentConfig,
    console: Console,
    *,
    checkpoint: Callable[[Sequence[Any]], Checkpoint] | None = None,
    followers: Sequence[Progress] = (),
    initial: InitialWeights | None = None,
) -> tuple[keras.Model, FitResult]:
    """Train the GRU from word ids (B, T) to logits (B, C); it keeps its best epoch.

    Args:
        data: What to learn.
        read: Its texts.
        target: Of these data.
        config: Every setting.
        console: Where to show progress.
        checkpoint: As of `gru_training.loop.train.train`.
        followers: Likewise.
        initial: Weights that the network begins with; by default they are drawn.

    Raises:
        DivergenceError: A loss became infinite or not a number.
        CheckpointError: The checkpoint cannot be written or continued.
    """
    vocabulary, vectors, trained, pieces = read.words
    model = build_sentiment_model(
        config.model,
        len(vocabulary),
        target.outputs,
        vectors,
        trained,
        pieces,
        config.pretraining.vectors_use if config.pretraining.vectors else "both",
    )
    if initial is not None:
        initial.set_weights(model, target, read.rows["train"].labels)
    elif config.model.word_ratios:
        initialise_words(model, word_ratios(read.rows["train"], len(data.classes), trained))
    settings = config.training
    if data.train.weights is not None:
        target = WeightedTarget(target)
    rows, held_out = (
        target.learned_from(part, read.rows[part]) for part in ("train", "validation")
    )
    batches = LengthBucketedBatches(
        rows.ids,
        rows.labels,
        settings.batch_size,
        settings.seed,
        shares=_shares(target.in_units(rows.labels)) if settings.balanced_batches else None,
        drawn=target.drawn(len(read.rows["train"].ids), len(rows.ids)),
    )
    validation = LengthBucketedBatches(
        held_out.ids, held_out.labels, EVALUATION_BATCH, settings.seed
    )
    result = train(
        model,
        batches,
        validation.in_length_order,
        target.objective(),
        settings,
        signature=(tf.TensorSpec((None, None), tf.int32), target.signature),
        console=console,
        checkpoint=checkpoint,
        followers=followers,
        adam=SparseAdam if settings.sparse_updates else keras.optimizers.Adam,
    )
    return model, result


def _shares(classes: np.ndarray) -> np.ndarray:
    """How often each row of class numbers (N,) is drawn so that all are equally frequent, (N,)."""
    return np.asarray(1 / np.bincount(classes)[classes])


def with_ngrams(config: SentimentConfig, data: SentimentData) -> bool:
    """Whether an n-gram regression answers with the GRU; by default for data of one's own.

    A model that reads in one direction is left alone, as it would no longer stream.
    """
    if config.model.ngrams is not None:
        return config.model.ngrams
    return not data.made_up and config.model.bidirectional


def fitted_shares(
    rows: TokenRows,
    gru_logits: np.ndarray,
    ngram_logits: np.ndarray,
    target: Target,
    config: SentimentConfig,
) -> tuple[float, float]:
    """The shares of the GRU and of an n-gram regression in an answer of both.

    Args:
        rows: That neither was trained on.
        gru_logits: (N, C).
        ngram_logits: (N, C).
        target: Of the data.
        config: Every setting; a metric that it names chooses the shares.
    """
    by = None if config.training.metric is None else target.metric.score
    return fit_shares(rows.labels, gru_logits, ngram_logits, target.mean_loss, by)
