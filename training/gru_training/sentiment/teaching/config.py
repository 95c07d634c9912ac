"""The settings of self-training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gru_training.config import require_at_least
from gru_training.errors import ConfigError


@dataclass(frozen=True)
class TeachingConfig:
    """A trained run whose answers to texts without labels are learned beside the labels."""

    teach: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Also learn what this run answers to the texts of --unlabelled. It must be of the same
    classes, and must not have been trained on the rows that are held out here."""
    teach_sentences: bool = False
    """Cut these texts into sentences, where the labelled texts are single sentences."""
    teach_texts: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Read so many of these texts, or sentences, in each epoch, drawn anew; default: twice as many
    as there are labelled rows."""

    teach_sure: Annotated[float | None, tyro.conf.arg(metavar="P")] = None
    """Of these texts read only those for whose class the run gives a probability of at least P, and
    of no class more than its share of the labelled rows."""

    def __post_init__(self) -> None:
        for flag, value in (
            ("--teach-sentences", self.teach_sentences),
            ("--teach-texts", self.teach_texts is not None),
            ("--teach-sure", self.teach_sure is not None),
        ):
            if value and self.teach is None:
                raise ConfigError(f"{flag} needs --teach RUN, the run that is to label the texts")
        if self.teach_texts is not None:
            require_at_least("--teach-texts", self.teach_texts, 1)
        if self.teach_sure is not None and not 0 < self.teach_sure < 1:
            raise ConfigError(f"--teach-sure must be between 0 and 1, got {self.teach_sure}")
