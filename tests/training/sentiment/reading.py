"""Texts read with the settings of their rows alone."""

from gru_training.sentiment.config import SentimentConfig, SentimentTrainingConfig
from gru_training.sentiment.data import load_data


def load_sentiment_data(config, seed, table=None):
    """The rows of these settings, split under a seed."""
    training = SentimentTrainingConfig(seed=seed)
    return load_data(SentimentConfig(data=config, training=training), table)
