"""One trial of a search for settings: a training that is judged on its validation documents."""

from collections.abc import Callable

import keras
from rich.console import Console

from gru_training.judged import Judged
from gru_training.language.config import LanguageConfig
from gru_training.language.data import LanguageData
from gru_training.language.network.training import SHOWN, train_model
from gru_training.language.reading import read_tokens
from gru_training.loop.progress import EpochFollower


def try_settings(
    config: LanguageConfig, data: LanguageData, after_epoch: Callable[[int, float], None]
) -> Judged:
    """Bits per token of the validation documents; no test document is measured.

    Args:
        config: Every setting.
        data: What to learn.
        after_epoch: Told the number of each epoch and the bits after it; may end the trial by an
            error.

    Raises:
        TrainingError: These settings cannot be used.
    """
    keras.utils.set_random_seed(config.training.seed)
    read = read_tokens(data, config.data)
    follower = EpochFollower(SHOWN, after_epoch)
    _, result, _ = train_model(read, config, Console(quiet=True), followers=(follower,))
    return Judged(result.epochs[result.best_epoch - 1].validation[SHOWN])
