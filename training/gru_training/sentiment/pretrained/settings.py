"""The settings of a classifier that begins with a language model; needs no TensorFlow."""

from dataclasses import replace

from gru_training.errors import ConfigError, TrainingError
from gru_training.runs.directory import RunDirectory
from gru_training.sentiment.config import ClassifierConfig, SentimentConfig
from gru_training.sentiment.data import SentimentData
from gru_training.sentiment.rows import text_key
from gru_training.task import TASKS, find_task
from gru_training.words.text_encoder import TextEncoder

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


def with_note_on_known_texts(config: SentimentConfig, data: SentimentData) -> SentimentData:
    """The data, with a note where the language model has learned from texts that are held out.

    Raises:
        TrainingError: As of `encoder_of`.
    """
    if config.pretraining.pretrained is None or config.continued is not None:
        return data
    held_out = [*data.validation.texts, *data.test.texts]
    path = config.pretraining.pretrained
    encoder = encoder_of(config)
    try:
        learned = {text_key(text) for text in encoder.texts()}
    except TrainingError as error:
        note = f"whether {path} has learned from texts held out here cannot be said: {error}"
        return replace(data, notes=(*data.notes, note))
    known = sum(text_key(text) in learned for text in held_out)
    if not known:
        return data
    note = (
        f"{known:,} of the {len(held_out):,} texts held out here are among those that {path} has "
        "learned from, without their labels"
    )
    return replace(data, notes=(*data.notes, note))
