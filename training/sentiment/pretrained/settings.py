"""The settings of a classifier that begins with a language model; needs no TensorFlow."""

from dataclasses import replace

from training.errors import ConfigError, TrainingError
from training.runs.directory import RunDirectory
from training.sentiment.config import ClassifierConfig, SentimentConfig
from training.task import TASKS, find_task
from training.words.text_encoder import TextEncoder

HELD = ("embedding_size", "units", "layers", "bidirectional", "subwords", "word_ratios")
"""Settings of the network that follow from a language model."""


def encoder_of(config: SentimentConfig) -> TextEncoder:
    """What the run of `--pretrained` gives.

    Raises:
        TrainingError: There is no such run, or it is no language model of words.
    """
    path = config.pretraining.pretrained
    assert path is not None
    try:
        name = RunDirectory.open(path).task
        if name not in TASKS:
            raise ConfigError(f"{path}: expected a run of gru-train language, got task {name!r}")
        task = find_task(name)
        return task.encoder(task.open_run(path))
    except TrainingError as error:
        raise type(error)(f"--pretrained: {error}") from error


def with_encoder_sizes(config: SentimentConfig) -> SentimentConfig:
    """The settings with the sizes of the language model, where there is one to begin with.

    A run that goes on from another has the sizes of that.

    Raises:
        TrainingError: As of `encoder_of`; or another size was asked for.
    """
    if config.pretraining.pretrained is None or config.continued is not None:
        return config
    encoder, model = encoder_of(config), config.model
    for name in ("embedding_size", "units", "layers"):
        given, size = getattr(model, name), getattr(encoder, name)
        if given not in (size, getattr(ClassifierConfig, name)):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} must be left out with --pretrained, or that of "
                f"{config.pretraining.pretrained}, {size}; got {given}"
            )
    model = replace(
        model,
        embedding_size=encoder.embedding_size,
        units=encoder.units,
        layers=encoder.layers,
        bidirectional=False,
    )
    return replace(config, model=model)
