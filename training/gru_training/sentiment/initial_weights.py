"""Words and weights that a text classifier begins with, taken from an earlier run."""

from collections.abc import Sequence
from typing import Any, cast

import keras
import numpy as np

from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.run import TEXT_RULES, SentimentRun
from gru_training.sentiment.targets.scale import Scale
from gru_training.sentiment.targets.target import Target
from gru_training.sentiment.vocabulary.words import SentimentWords
from gru_training.sentiment.warm_start import starting_run, with_start_settings
from gru_training.words.embedding import WordEmbedding
from gru_training.words.pieces import word_pieces
from gru_training.words.vocabulary import (
    RESERVED,
    UNKNOWN,
    TokenIndex,
    Vocabulary,
    index_tokens,
)

_TAKEN = ("model.keras", "vocabulary.txt", "classes.json", TEXT_RULES)


class InitialWeights:
    """The words and weights of a run, to begin a training with.

    Args:
        config: Settings of the training, with `--warm-start`.

    Attributes:
        config: The settings with those that follow from the run.
        run: The run.

    Raises:
        TrainingError: The run cannot be loaded, or other settings were asked for.
    """

    def __init__(self, config: SentimentConfig):
        self.run: SentimentRun = starting_run(config)
        self.config = with_start_settings(config, self.run)
        self._model = self.run.load_model()
        self._embedding: Any = self._model.get_layer("embedding")

    @property
    def scale(self) -> Scale | None:
        """The units in which the network answers, of a number to estimate; else None."""
        return self.run.scale if self.run.kind == "number" else None

    def words(self, texts: Sequence[str]) -> SentimentWords:
        """Put the words that the texts add behind those of the run, which keep their ids.

        Learned pieces of words stay as they are: any word can be cut into them.

        Args:
            texts: Texts of all training rows.
        """
        vocabulary, data = self.run.vocabulary, self.config.data
        if self.run.reading != "pieces":
            index = index_tokens(texts, self.run.cleaned, self.run.reading)
            room = data.max_vocabulary - (self._trained_words - len(RESERVED))
            vocabulary = _with_new_words(vocabulary, index, room, data.min_count)
        vectors = pieces = None
        if isinstance(self._embedding, WordEmbedding):
            if self._embedding.fixed is not None:
                vectors = _with_new_rows(self._embedding.fixed.numpy(), len(vocabulary))
            if self._embedding.pieces is not None:
                pieces = word_pieces(vocabulary.tokens)
        return SentimentWords(vocabulary, vectors, len(vocabulary), pieces)

    def set_weights(self, model: keras.Model, target: Target, targets: np.ndarray) -> None:
        """Give a network the weights of the run.

        New words begin with the unknown word's vector, as which they were read before. Outputs of
        classes or labels that the run knows are those of the run, by their names; the logit of a
        new one begins with its log odds in the training rows, whatever the text.

        Args:
            model: Network of `build_sentiment_model`, of these words and settings.
            target: Target of the new data.
            targets: Targets of the training rows, (N,) or (N, C).
        """
        for layer in model.layers:
            if not layer.weights:
                continue
            old = self._model.get_layer(layer.name)
            if layer.name == "embedding":
                _set_vectors(layer, old)
            elif layer.name == "logits" and target.kind != "number":
                self._set_outputs(layer, old, target, targets)
            else:
                layer.set_weights(old.get_weights())

    def record(self, words: int, classes: Sequence[str]) -> dict[str, Any]:
        """Describe the run for `metrics.json`; see `gru_training.warm_start`.

        Args:
            words: Size of the new vocabulary.
            classes: Classes or labels of the new run.
        """
        known = self.run.classes
        return {
            "run": str(self.run.path),
            "digest": self.run.digest(_TAKEN),
            "new_words": words - len(self.run.vocabulary),
            "new_classes": [name for name in classes if name not in known],
            "dropped_classes": [name for name in known if name not in classes],
        }

    def _set_outputs(
        self,
        layer: keras.layers.Dense,
        old: keras.layers.Dense,
        target: Target,
        targets: np.ndarray,
    ) -> None:
        kernel, bias = (cast(np.ndarray, value) for value in old.get_weights())
        odds = _log_odds(target.members(targets))
        places = {name: place for place, name in enumerate(self.run.classes)}
        begun = np.zeros((len(kernel), layer.units), kernel.dtype), odds.astype(bias.dtype)
        for number, name in enumerate(target.names):
            if name in places:
                begun[0][:, number] = kernel[:, places[name]]
                begun[1][number] = bias[places[name]]
        layer.set_weights(list(begun))

    @property
    def _trained_words(self) -> int:
        layer = self._embedding
        return layer.trained_words if isinstance(layer, WordEmbedding) else layer.input_dim


def initial_weights(config: SentimentConfig) -> InitialWeights | None:
    """The words and weights that a training begins with; None: they are drawn.

    Raises:
        TrainingError: As of `InitialWeights`.
    """
    return None if config.training.warm_start is None else InitialWeights(config)


def _log_odds(members: np.ndarray) -> np.ndarray:
    """Log odds of each class or label, (C,), from its rows, (N, C) bool."""
    count = members.sum(axis=0)
    return np.asarray(np.log((count + 1) / (len(members) - count + 1)), np.float32)


def _with_new_words(known: Vocabulary, index: TokenIndex, room: int, min_count: int) -> Vocabulary:
    """The known words with their ids, then new ones, the most frequent first.

    Args:
        known: Words so far.
        index: Tokens of the training texts.
        room: Maximum number of words to add.
        min_count: Least number of occurrences of a word that is added.
    """
    there = set(known.tokens)
    found = [
        token
        for token, count in zip(index.tokens, index.counts, strict=True)
        if count >= min_count and token not in there
    ]
    return Vocabulary([*known.tokens[len(RESERVED) :], *found[: max(0, room)]])


def _with_new_rows(table: np.ndarray, rows: int) -> np.ndarray:
    """Word vectors (V, D) with those of new words, the unknown word's: (rows, D)."""
    further = np.broadcast_to(table[UNKNOWN], (rows - len(table), table.shape[1]))
    return np.concatenate([table, further])


def _set_vectors(layer: Any, old: Any) -> None:
    if not isinstance(layer, WordEmbedding):
        layer.embeddings.assign(_with_new_rows(old.embeddings.numpy(), layer.input_dim))
        return
    for name in ("fixed", "trained"):
        table = getattr(layer, name)
        if table is not None:
            table.assign(_with_new_rows(getattr(old, name).numpy(), table.shape[0]))
    if layer.pieces is not None:
        layer.piece_vectors.assign(old.piece_vectors)
