"""The presets learn what they are for."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from gru_training.language.config import PRESETS
from gru_training.language.data import load_language_data
from gru_training.language.kneser_ney import KneserNey
from gru_training.language.reading import END_ID, read_tokens
from gru_training.language.training import train_model


@pytest.mark.long
def test_two_epochs_of_characters_learn_more_than_pairs():
    preset = PRESETS["characters"]
    config = replace(preset, training=replace(preset.training, epochs=2))
    read = read_tokens(load_language_data(config.data, 0), config.data)
    train, validation = (
        [np.append(row, END_ID) for row in part.rows] for part in (read.train, read.validation)
    )
    pairs = KneserNey(train, len(read.vocabulary), order=2).probabilities(validation)
    trained = train_model(read, config, Console(quiet=True))
    assert trained.result.epochs[-1].validation["loss"] < -np.log(pairs).mean()
