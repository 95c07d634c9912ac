"""The words and weights with which a text classifier begins: new, or of an earlier run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import keras
import numpy as np

from gru_serving.preprocessing.texts import RESERVED, UNKNOWN
from gru_training.sentiment.config import SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.decision import Scale
from gru_training.sentiment.network.model import initialise_words
from gru_training.sentiment.run import TEXT_RULES, SentimentRun
from gru_training.sentiment.targets import Target
from gru_training.sentiment.texts import Progress, SentimentWords, sentiment_words
from gru_training.sentiment.warm_start import learned_digests, starting_run, with_start_settings
from gru_training.words.embedding import WordEmbedding, word_pieces
from gru_training.words.ngrams import word_ratios
from gru_training.words.tokens import Reading
from gru_training.words.vocabulary import TokenRows, Vocabulary, index_tokens

_SOURCE_FILES = ("model.keras", "vocabulary.txt", "classes.json", TEXT_RULES)


class InitialWeights:
    """The starting point of a training: words of the training texts, and drawn weights.

    Args:
        config: Settings of the training.

    Attributes:
        config: Settings of the training, with those that its beginning implies.
    """

    def __init__(self, config: SentimentConfig):
        self.config = config

    @property
    def scale(self) -> Scale | None:
        """Units of the network's answers for a number to estimate; None for those of the data."""
        return None

    @property
    def learned_digests(self) -> np.ndarray:
        """Digests (N,) uint64 of the texts from which the weights have learned."""
        return np.zeros(0, np.uint64)

    def words(
        self, data: SentimentData, cleaned: bool, reading: Reading, folder: Path, progress: Progress
    ) -> SentimentWords:
        """Learn the words that the network knows, and vectors if the settings ask for them.

        Args:
            data: Rows of the training.
            cleaned: Whether texts are cleaned before they are read.
            reading: Kind of the tokens.
            folder: Folder of the pre-trained vectors.
            progress: Function that is given a line on what is being done.

        Raises:
            DataError: No word is left, or the texts to pre-train on cannot be used.
        """
        return sentiment_words(data, self.config, folder, progress, cleaned, reading)

    def set_weights(
        self,
        model: keras.Model,
        vocabulary: Vocabulary,  # noqa: ARG002
        target: Target,
        train: TokenRows,
    ) -> None:
        """Set the weights of a network; drawn ones stay, except for the ratios of `--word-ratios`.

        Args:
            model: Network of `build_sentiment_model`, of these words and settings.
            vocabulary: Words of the network, as `words` learns them.
            target: Target of the data.
            train: Rows to learn from.
        """
        if self.config.model.word_ratios:
            trained = _trained_words(model.get_layer("embedding"))
            initialise_words(model, word_ratios(train, target.outputs, trained))

    def record(self, words: int, classes: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """Describe the origin of the weights, for `metrics.json`.

        Args:
            words: Size of the vocabulary.
            classes: Classes or labels of the run.
        """
        return {}


def initial_weights(config: SentimentConfig) -> InitialWeights:
    """Choose the starting point of a training.

    Raises:
        TrainingError: The run of `--warm-start` cannot be loaded, or other settings were asked for.
    """
    return InitialWeights(config) if config.training.warm_start is None else RunWeights(config)


class RunWeights(InitialWeights):
    """The words and weights of the run of `--warm-start`.

    Args:
        config: Settings of the training, with `--warm-start`.

    Raises:
        TrainingError: The run cannot be loaded, or other settings were asked for.
    """

    def __init__(self, config: SentimentConfig):
        self.run: SentimentRun = starting_run(config)
        super().__init__(with_start_settings(config, self.run))
        self._model = self.run.load_model()
        self._embedding: Any = self._model.get_layer("embedding")

    @property
    def scale(self) -> Scale | None:
        """The units of the run."""
        return self.run.scale if self.run.kind == "number" else None

    @property
    def learned_digests(self) -> np.ndarray:
        """Digests of the texts from which the run has learned."""
        return learned_digests(self.run)

    def words(
        self, data: SentimentData, cleaned: bool, reading: Reading, folder: Path, progress: Progress
    ) -> SentimentWords:
        """Append the new words of the texts to those of the run, which keep their ids."""
        del folder, progress
        vocabulary, settings = self.run.vocabulary, self.config.data
        index = index_tokens(data.learned_texts, cleaned, reading)
        room = settings.max_vocabulary - (_trained_words(self._embedding) - len(RESERVED))
        vocabulary = vocabulary.extended(index, room, settings.min_count)
        vectors = pieces = None
        if isinstance(self._embedding, WordEmbedding):
            if self._embedding.fixed is not None:
                vectors = self._embedding.fixed.numpy()[self._former_ids(vocabulary)]
            if self._embedding.pieces is not None:
                pieces = word_pieces(vocabulary.tokens)
        return SentimentWords(vocabulary, vectors, len(vocabulary), pieces)

    def set_weights(
        self, model: keras.Model, vocabulary: Vocabulary, target: Target, train: TokenRows
    ) -> None:
        """Set the weights of the run in a network.

        New words begin with the vector of what they were read as before. Outputs of
        classes or labels that the run knows are those of the run, by their names; the logit of a
        new one begins with its log odds in the training rows, whatever the text.
        """
        for layer in model.layers:
            if not layer.weights:
                continue
            old = self._model.get_layer(layer.name)
            if layer.name == "embedding":
                _set_vectors(layer, old, self._former_ids(vocabulary))
            elif layer.name == "logits" and target.kind != "number":
                self._set_outputs(layer, old, target, train.labels)
            else:
                layer.set_weights(old.get_weights())

    def record(self, words: int, classes: Sequence[str]) -> dict[str, Any]:
        """Describe the run; see `gru_training.warm_start`."""
        known = self.run.classes
        return {
            "warm_start": {
                "run": str(self.run.path),
                "digest": self.run.digest(_SOURCE_FILES),
                "new_words": words - len(self.run.vocabulary),
                "new_classes": [name for name in classes if name not in known],
                "dropped_classes": [name for name in known if name not in classes],
            }
        }

    def _former_ids(self, vocabulary: Vocabulary) -> np.ndarray:
        """Find the ids of the run by which it read the words of a larger vocabulary, (V,)."""
        known = len(self.run.vocabulary)
        further = vocabulary.tokens[known:]
        read = self.run.vocabulary.look_up([further], self.run.backoff)[0, : len(further)]
        return np.concatenate([np.arange(known), read])

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


def _trained_words(embedding: Any) -> int:
    """Return the number of ids with a trainable vector."""
    if isinstance(embedding, WordEmbedding):
        return int(embedding.trained_words)
    return int(embedding.input_dim)


def _log_odds(members: np.ndarray) -> np.ndarray:
    """Compute the log-odds of each class or label, (C,), from its rows, (N, C) bool."""
    count = members.sum(axis=0)
    return np.asarray(np.log((count + 1) / (len(members) - count + 1)), np.float32)


def _set_vectors(layer: Any, old: Any, ids: np.ndarray) -> None:
    """Give each word the vector that an earlier layer has of its id there, (V,)."""
    if not isinstance(layer, WordEmbedding):
        layer.embeddings.assign(old.embeddings.numpy()[ids])
        return
    if layer.fixed is not None:
        layer.fixed.assign(old.fixed.numpy()[ids])
    # Ids beyond its words share the unknown word's vector.
    known = np.where(ids < old.trained_words, ids, UNKNOWN)
    layer.trained.assign(old.trained.numpy()[known[: layer.trained.shape[0]]])
    if layer.pieces is not None:
        layer.piece_vectors.assign(old.piece_vectors)
