"""Studies whose trials train nothing."""

from gru_training.criterion import Criterion
from gru_training.sentiment.config import SentimentConfig
from gru_training.tune.search_space import SearchSpace
from gru_training.tune.study import LEFT_OUT, open_study

ACCURACY = Criterion("accuracy", True, ".1%", "accuracy")
SPACE = SearchSpace.of(SentimentConfig(), ["subwords", "word_ratios", "pooling"])


def opened(folder, criterion=ACCURACY, seed=0):
    return open_study(folder, criterion, seed)


def run_trial(study, value, left_out=None):
    """One trial, whose value is made of its settings."""

    def objective(trial):
        chosen = {name: choice.suggest(trial, name) for name, choice in SPACE.choices.items()}
        if left_out is not None:
            trial.set_user_attr(LEFT_OUT, left_out)
        return value(chosen)

    study.optimize(objective, n_trials=1)


def near_96_units(chosen):
    return 1 - abs(chosen["units"] - 96) / 1000 - abs(chosen["dropout"] - 0.4) / 10
